package stripetest

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// session is a visit to checkout or to the portal.
type session struct {
	id, customer, success, cancel string
	lines                         []line
	metadata                      map[string]string
	trialDays                     int
	tax, done                     bool
	portal                        bool
}

type line struct {
	price    price
	quantity int64
}

func (e endpoints) newCheckout(r *http.Request) (any, *failure) {
	form := r.Form
	made := &session{
		id: e.id("cs_test"), customer: form.Get("customer"), success: form.Get("success_url"), cancel: form.Get("cancel_url"),
		metadata: metadata(form, "subscription_data[metadata]"), tax: form.Get("automatic_tax[enabled]") == "true",
	}
	switch {
	case e.customers[made.customer] == nil:
		return nil, invalid("customer", "No such customer: '"+made.customer+"'")
	case form.Get("mode") != "subscription" || made.success == "":
		return nil, invalid("mode", "You must pass a mode and a success_url.")
	case made.tax && form.Get("customer_update[address]") != "auto":
		return nil, invalid("customer_update", "Automatic tax calculation in Checkout requires a valid address on the Customer.")
	}
	made.trialDays, _ = strconv.Atoi(form.Get("subscription_data[trial_period_days]")) // 0 if absent
	for i := 0; ; i++ {
		name := form.Get(fmt.Sprintf("line_items[%d][price]", i))
		if name == "" {
			break
		}
		price, is := prices()[name]
		if !is {
			return nil, missing("price", name)
		}
		quantity, err := strconv.ParseInt(form.Get(fmt.Sprintf("line_items[%d][quantity]", i)), 10, 64)
		if (err == nil) == price.metered {
			return nil, invalid("line_items", "Quantity is required for a licensed price and must not be given for a metered one.")
		}
		made.lines = append(made.lines, line{price, quantity})
	}
	e.sessions[made.id] = made
	return object{
		"id": made.id, "object": "checkout.session", "mode": "subscription", "status": "open", "customer": made.customer, "livemode": false,
		"client_reference_id": form.Get("client_reference_id"), "url": e.url + "/pay/" + made.id, "success_url": made.success, "cancel_url": made.cancel,
		"automatic_tax": object{"enabled": made.tax, "status": nil},
	}, nil
}

// listCheckouts answers with the open checkouts, because the product asks for no other status.
func (e endpoints) listCheckouts(r *http.Request) (any, *failure) {
	if r.Form.Get("status") != "open" {
		return nil, invalid("status", "The double lists open sessions only.")
	}
	var found []any
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		if one := e.sessions[id]; !one.portal && !one.done && one.customer == r.Form.Get("customer") {
			found = append(found, object{"id": id, "object": "checkout.session", "status": "open", "customer": one.customer})
		}
	}
	return list("/v1/checkout/sessions", found), nil
}

func (e endpoints) expireCheckout(r *http.Request) (any, *failure) {
	found, is := e.sessions[r.PathValue("id")]
	if !is || found.portal {
		return nil, missing("checkout.session", r.PathValue("id"))
	}
	if found.done {
		return nil, invalid("id", "Only Checkout Sessions with a status of open can be expired.")
	}
	found.done = true
	return object{"id": found.id, "object": "checkout.session", "status": "expired", "customer": found.customer}, nil
}

func (e endpoints) newPortal(r *http.Request) (any, *failure) {
	made := &session{portal: true, id: e.id("bps"), customer: r.Form.Get("customer"), success: r.Form.Get("return_url")}
	if e.customers[made.customer] == nil {
		return nil, invalid("customer", "No such customer: '"+made.customer+"'")
	}
	e.sessions[made.id] = made
	return object{
		"id": made.id, "object": "billing_portal.session", "customer": made.customer, "return_url": made.success, "livemode": false,
		"url": e.url + "/portal/" + made.id,
	}, nil
}

// checkoutPage is the page on which people pay.
func (s *Server) checkoutPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.asked(w, r)
	if found == nil {
		return
	}
	page(w, "Pay", `<form method="post"><button id="pay">Subscribe</button></form><a id="back" href="`+html.EscapeString(found.cancel)+`">Back</a>`)
}

func (s *Server) pay(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.asked(w, r)
	if found == nil {
		return
	}
	found.done = true
	made := s.subscribe(found)
	s.happened("checkout.session.completed", object{
		"id": found.id, "object": "checkout.session", "customer": found.customer, "subscription": made.id, "status": "complete",
	})
	http.Redirect(w, r, found.success, http.StatusSeeOther)
}

// asked returns a page's session. If it is absent or over, asked writes the response and returns nil.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) *session {
	found := s.sessions[r.PathValue("id")]
	if found == nil || found.done {
		http.NotFound(w, r)
		return nil
	}
	return found
}

// portalPage is the page on which people change their subscription.
func (s *Server) portalPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.asked(w, r)
	if found == nil {
		return
	}
	page(w, "Portal", `<form method="post"><button id="cancel">Cancel plan</button></form><a id="back" href="`+html.EscapeString(found.success)+`">Back</a>`)
}

func (s *Server) changeInPortal(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.asked(w, r)
	if found == nil {
		return
	}
	for _, one := range s.subscriptions {
		if one.customer == found.customer && one.status != "canceled" {
			s.setCancel(one, true)
		}
	}
	http.Redirect(w, r, found.success, http.StatusSeeOther)
}

func page(w http.ResponseWriter, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!DOCTYPE html><html lang=en><title>%s</title><h1>%s</h1>%s</html>", title, title, body)
}

// Pay pays at a checkout's address, without a browser.
func (s *Server) Pay(address string) error {
	response, err := (&http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).Post(address, "application/x-www-form-urlencoded", nil) //nolint:noctx // in the same process
	if err != nil {
		return fmt.Errorf("pay: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("pay: status %d", response.StatusCode)
	}
	return nil
}

// Open opens a customer's checkout without the product, as an old browser page could, and returns its
// address.
func (s *Server) Open(customer string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.customers[customer] == nil {
		return "", fmt.Errorf("no customer %s", customer)
	}
	made := &session{id: s.id("cs_test"), customer: customer, success: s.URL, lines: []line{{price: prices()[ProPrice], quantity: 1}}}
	s.sessions[made.id] = made
	return s.URL + "/pay/" + made.id, nil
}
