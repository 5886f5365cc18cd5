// Package stripetest is a double of Stripe for tests. It keeps customers, subscriptions, invoices and meters,
// has a clock for tests to advance, shows a hosted checkout and portal, and sends signed webhooks. It answers
// as Stripe's API of version 2023-10-16 does.
package stripetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

// The double's credentials and ids.
const (
	Key           = "sk_test_double"
	WebhookSecret = "whsec_double"
	MeterEvent    = "palimpsest_exchanges"
	Meter         = "mtr_1"

	ProPrice       = "price_pro"
	ProUsagePrice  = "price_pro_usage"
	TeamPrice      = "price_team"
	TeamUsagePrice = "price_team_usage"
)

// ProIncluded and TeamIncluded are the free exchanges in the first tier of the double's usage prices.
const (
	ProIncluded  = 50_000
	TeamIncluded = 200_000
)

// Server is a running double.
type Server struct {
	URL string

	// Before is called before every call is answered, unless nil. If it writes a response and returns true,
	// the call ends.
	Before func(w http.ResponseWriter, r *http.Request) bool

	// After is called after every call with a change and before its response, unless nil. If it returns false
	// the response is never sent.
	After func(r *http.Request) bool

	mu      sync.Mutex
	calls   []string
	answers map[string]answer // by idempotency key
	*book
}

// book is the double's data. Readers and writers hold the server's lock.
type book struct {
	url           string // of the server
	now           time.Time
	serial        int
	customers     map[string]*customer
	sessions      map[string]*session
	subscriptions map[string]*subscription
	invoices      []*invoice
	meterEvents   map[string]meterEvent
	events        []Event
}

// endpoints are the API's calls, which read and change the book.
type endpoints struct{ *book }

// object is a JSON object of Stripe's.
type object = map[string]any

// answer is a call's recorded response.
type answer struct {
	status int
	body   []byte
	form   string
}

// failure is an error of Stripe's.
type failure struct {
	status       int
	kind, detail string
	param        string
}

// New starts a double whose clock is set to a time.
func New(t testing.TB, now time.Time) *Server {
	t.Helper()
	s := &Server{answers: map[string]answer{}, book: &book{
		now: now.UTC().Truncate(time.Second), customers: map[string]*customer{},
		sessions: map[string]*session{}, subscriptions: map[string]*subscription{}, meterEvents: map[string]meterEvent{},
	}}
	server := httptest.NewServer(s.routes())
	t.Cleanup(server.Close)
	s.URL, s.url = server.URL, server.URL
	return s
}

// Now returns the double's time.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Calls returns all API calls until now: method and path.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	api := func(pattern string, do func(r *http.Request) (any, *failure)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, do) })
	}
	calls := endpoints{s.book}
	api("POST /v1/customers", calls.newCustomer)
	api("GET /v1/customers/{id}", calls.getCustomer)
	api("POST /v1/checkout/sessions", calls.newCheckout)
	api("GET /v1/checkout/sessions", calls.listCheckouts)
	api("POST /v1/checkout/sessions/{id}/expire", calls.expireCheckout)
	api("POST /v1/billing_portal/sessions", calls.newPortal)
	api("GET /v1/prices/{id}", calls.getPrice)
	api("GET /v1/subscriptions", calls.listSubscriptions)
	api("GET /v1/subscriptions/{id}", calls.getSubscription)
	api("POST /v1/subscriptions/{id}", calls.changeSubscription)
	api("DELETE /v1/subscriptions/{id}", calls.cancelSubscription)
	api("POST /v1/subscription_items/{id}", calls.changeItem)
	api("GET /v1/invoices", calls.listInvoices)
	api("POST /v1/billing/meter_events", calls.newMeterEvent)
	api("GET /v1/billing/meters/{id}/event_summaries", calls.listSummaries)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /pay/{id}", s.checkoutPage)
	mux.HandleFunc("POST /pay/{id}", s.pay)
	mux.HandleFunc("GET /portal/{id}", s.portalPage)
	mux.HandleFunc("POST /portal/{id}", s.changeInPortal)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, func(r *http.Request) (any, *failure) {
			return nil, &failure{status: http.StatusNotFound, kind: "invalid_request_error", detail: "Unrecognized request URL (" + r.Method + ": " + r.URL.Path + ")."}
		})
	})
	return mux
}

// serve answers an API call.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, do func(r *http.Request) (any, *failure)) {
	// Under the lock, because tests set these and then ask for the time.
	s.mu.Lock()
	before, after := s.Before, s.After
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+Key {
		write(w, failed(&failure{status: http.StatusUnauthorized, kind: "invalid_request_error", detail: "Invalid API Key provided"}))
		return
	}
	if version := r.Header.Get("Stripe-Version"); version != stripe.APIVersion {
		write(w, failed(&failure{status: http.StatusBadRequest, kind: "invalid_request_error", detail: "Invalid Stripe API version: " + version}))
		return
	}
	if err := r.ParseForm(); err != nil {
		write(w, failed(&failure{status: http.StatusBadRequest, kind: "invalid_request_error", detail: err.Error()}))
		return
	}
	result := s.once(r, do)
	if r.Method != http.MethodGet && after != nil {
		goes := after(r)
		_ = s.Now() // so that the next call sees its effects
		if !goes {
			panic(http.ErrAbortHandler)
		}
	}
	write(w, result)
}

// once performs a call, or repeats its response if the idempotency key is known.
func (s *Server) once(r *http.Request, do func(r *http.Request) (any, *failure)) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	key, form := r.Header.Get("Idempotency-Key"), r.URL.Path+"?"+r.Form.Encode()
	if known, is := s.answers[key]; is && key != "" {
		if known.form != form {
			return failed(&failure{
				status: http.StatusBadRequest, kind: "idempotency_error",
				detail: "Keys for idempotent requests can only be used with the same parameters they were first used with.",
			})
		}
		return known
	}
	result, wrong := do(r)
	made := answer{status: http.StatusOK, form: form}
	if wrong != nil {
		made = failed(wrong)
		made.form = form
	} else {
		made.body, _ = json.Marshal(result) //nolint:errchkjson // maps of plain values
	}
	if key != "" && r.Method == http.MethodPost {
		s.answers[key] = made
	}
	return made
}

func failed(wrong *failure) answer {
	detail := object{"type": wrong.kind, "message": wrong.detail}
	if wrong.param != "" {
		detail["param"] = wrong.param
	}
	if wrong.status == http.StatusNotFound {
		detail["code"] = "resource_missing"
	}
	body, _ := json.Marshal(object{"error": detail}) //nolint:errchkjson // maps of plain values
	return answer{status: wrong.status, body: body}
}

// Refuse answers with an error object, like Stripe when it refuses a call. Stripe's library would treat a
// response without one as a broken connection and retry for seconds.
func Refuse(w http.ResponseWriter, status int) {
	write(w, failed(&failure{status: status, kind: "invalid_request_error", detail: http.StatusText(status)}))
}

func write(w http.ResponseWriter, answer answer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_double")
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body)
}

// missing is the failure for an unknown id.
func missing(what, id string) *failure {
	return &failure{status: http.StatusNotFound, kind: "invalid_request_error", detail: fmt.Sprintf("No such %s: '%s'", what, id), param: "id"}
}

// invalid is the failure for an invalid parameter.
func invalid(param, detail string) *failure {
	return &failure{status: http.StatusBadRequest, kind: "invalid_request_error", detail: detail, param: param}
}

// id returns a new id.
func (b *book) id(prefix string) string {
	b.serial++
	return fmt.Sprintf("%s_%06d", prefix, b.serial)
}

// list returns a list of Stripe's.
func list(path string, items []any) object {
	if items == nil {
		items = []any{}
	}
	return object{"object": "list", "url": path, "has_more": false, "data": items}
}

// metadata returns a form's values under a name: name[key]=value.
func metadata(form url.Values, name string) map[string]string {
	found := map[string]string{}
	for field := range maps.Keys(form) {
		if key, is := strings.CutPrefix(field, name+"["); is && strings.HasSuffix(key, "]") {
			found[strings.TrimSuffix(key, "]")] = form.Get(field)
		}
	}
	return found
}

// stamp returns a time as Stripe writes it, or nil.
func stamp(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.Unix()
}
