package pages_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/billing"
	"palimpsest/billing/billingdb"
	"palimpsest/billing/stripetest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// shop is the dashboard with billing on, before a double of Stripe.
type shop struct {
	*webtest.Product

	double  *stripetest.Server
	service *billing.Service
	store   *billingdb.Store
	front   string // where people reach the dashboard
}

func billingOpen(t *testing.T, trialDays int) *shop {
	t.Helper()
	s := &shop{double: stripetest.New(t, time.Now())}
	// Stripe leads people back to an address that is known before the dashboard runs.
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, err := url.Parse(s.URL)
		if err != nil {
			t.Error(err)
			return
		}
		(&httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Host = request.In.Host
		}}).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	s.front = front.URL
	s.Product = webtest.Start(t, func(product *webtest.Product, deps *web.Deps) {
		config := billing.DefaultConfig()
		config.APIKey, config.WebhookSecret, config.APIBase = stripetest.Key, stripetest.WebhookSecret, s.double.URL
		config.Meter, config.TrialDays, config.PublicURL = stripetest.Meter, trialDays, front.URL
		config.Catalog = billing.Catalog{
			Pro:  billing.Prices{Plan: []string{stripetest.ProPrice}, Usage: stripetest.ProUsagePrice},
			Team: billing.Prices{Plan: []string{stripetest.TeamPrice}},
		}
		s.store = billingdb.New(product.DB)
		s.service = billing.New(config, billing.Deps{Store: s.store, Log: slog.New(slog.DiscardHandler), Now: s.double.Now})
		deps.Administration.Billing = s.service
	})
	return s
}

// buy has a person buy the plan Pro past the browser.
func (s *shop) buy(t *testing.T, person *webtest.Person) (customer string) {
	t.Helper()
	address, err := s.service.Checkout(t.Context(), person.Workspace, person.Email, "pro")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.double.Pay(address); err != nil {
		t.Fatal(err)
	}
	return s.read(t, person).Customer
}

// read reads the state at Stripe, as a notice would have it done.
func (s *shop) read(t *testing.T, person *webtest.Person) billing.Account {
	t.Helper()
	if err := s.service.Read(t.Context(), person.Workspace.ID); err != nil {
		t.Fatal(err)
	}
	account, err := s.store.Account(t.Context(), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	return account
}

func (s *shop) use(t *testing.T, person *webtest.Person, count int) {
	t.Helper()
	exchanges := make([]tenants.Exchange, count)
	for i := range exchanges {
		exchanges[i] = tenants.Exchange{ID: uuid.Must(uuid.NewV7()), At: s.double.Now(), Request: tenants.ExchangeRequest{APIKey: uuid.New(), Endpoint: "/v1/messages"}, Answer: tenants.ExchangeAnswer{Status: 200, Attempts: 1}}
	}
	if err := s.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, exchanges); err != nil {
		t.Fatal(err)
	}
	if err := s.service.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutBillingThePageSaysSoAndNothingElseAppears(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/billing")
	if page.Status != http.StatusOK || page.TestID("state") != "Unlimited" || !strings.Contains(page.TestID("plan"), "Billing is off") {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	if page.Has("main form") || page.Has(`[data-testid="usage"], [data-testid="plan-box"]`) {
		t.Errorf("there is more: %s", page.Text("main"))
	}
	if page := person.Post("/billing/checkout", "plan", "pro"); page.Path != "/billing" {
		t.Errorf("checkout leads to %s with %d", page.Path, page.Status)
	}
}

func TestEachStateOfAPlanIsShown(t *testing.T) {
	t.Parallel()
	s := billingOpen(t, 14)
	person := s.SignUp(t, "northbeam")
	s.use(t, person, 1234)
	check := func(state, plan string, more ...string) webtest.Page {
		t.Helper()
		page := person.Get("/billing")
		if page.Status != http.StatusOK || page.TestID("state") != state || !strings.Contains(page.TestID("plan"), plan) {
			t.Errorf("status %d, state %q, %q; want %q", page.Status, page.TestID("state"), page.TestID("plan"), state)
		}
		for _, text := range more {
			if !strings.Contains(page.Text("body"), text) {
				t.Errorf("%s: %q is not there: %s", state, text, page.Text("body"))
			}
		}
		return page
	}
	free := check("Free", "5,000 exchanges", "1,234 of 5,000 included", "24% of 5,000", "Choose Pro", "20.00 USD each month", "50,000 exchanges included", "30.00 USD each month for each member")
	if free.Has(`form[action="/billing/portal"]`) || free.Has(`[data-testid="invoices"]`) {
		t.Error("a workspace that has bought nothing is led to the portal")
	}
	if policy := free.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' "+s.double.URL+";") {
		t.Errorf("the forms cannot lead to Stripe: %s", policy)
	}
	if policy := person.Get("/overview").Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self';") {
		t.Errorf("other pages may lead elsewhere: %s", policy)
	}

	customer := s.buy(t, person)
	trial := check("Trial", "You pay from then on", "of 50,000 included", "Each further exchange costs 0.01 USD", "Plan Pro")
	if trial.Has(`[data-testid="offers"]`) || !trial.Has(`form[action="/billing/portal"]`) {
		t.Error("a second plan is offered, or the portal is not")
	}
	s.double.Advance(s.double.Now().AddDate(0, 0, 15))
	s.read(t, person)
	paid := check("Active", "It renews on", "PAL-0001", "paid")
	rows := regexp.MustCompile(`^number,created_at,total_smallest_unit,currency,status,link\r\n(PAL-000\d,\d{4}-\d\d-\d\dT[\d:]{8}Z,2000,usd,paid,` + regexp.QuoteMeta(s.double.URL) + `/\S+\r\n)+$`)
	if file := person.Get("/billing/invoices/csv"); file.Status != http.StatusOK || !paid.Has(`a[download][href="/billing/invoices/csv"]`) || !rows.MatchString(file.HTML) {
		t.Errorf("the file of the invoices: %d, %s", file.Status, file.HTML)
	}

	s.double.SetCard(customer, true)
	s.double.Advance(s.double.Now().AddDate(0, 0, 32)) // no month is longer
	deadline := s.read(t, person).Deadline(14 * 24 * time.Hour).Format("2 Jan 2006")
	check("Past due", "A payment failed", "Everything works as before until "+deadline, "open")
	if page := person.Colleague(tenants.Viewer).Get("/overview"); !strings.Contains(page.Text("main"), deadline) || page.Has(`a[href="/billing"]`) {
		t.Errorf("a viewer reads %s", page.Text("main"))
	}
	s.double.Advance(s.double.Now().AddDate(0, 0, 15))
	s.read(t, person)
	check("Past due", "A payment failed", "Since "+deadline+" requests pass uncompressed; they are never blocked.")

	s.double.PayOpen(customer)
	if page := person.Post("/billing/portal"); page.Path != "/portal/"+pathEnd(page.Path) || page.Status != http.StatusOK {
		t.Errorf("the portal is at %s (%d)", page.Path, page.Status)
	} else if err := s.double.Pay(s.double.URL + page.Path); err != nil { // its one button cancels
		t.Fatal(err)
	}
	s.read(t, person)
	check("Ends "+s.read(t, person).EndsAt.Format("2 Jan 2006"), "It is canceled")
	s.double.Advance(s.double.Now().AddDate(0, 1, 5))
	s.read(t, person)
	check("Free", "The subscription ended on", "Choose Pro")
}

func pathEnd(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func TestQuotaThatIsUsedUpIsToldOnEveryPage(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	s := billingOpen(t, 0)
	person := s.SignUp(t, "northbeam")
	s.use(t, person, billing.FreeExchanges+1)
	const used = "5,000 exchanges of the Free plan are used up for this month. Until 1 "
	viewer := person.Colleague(tenants.Viewer)
	for _, path := range []string{"/overview", "/sessions", "/requests", "/keys", "/billing"} {
		if page := person.Get(path); !strings.Contains(page.Text("main > .callout.warn"), used) || !page.Has(`main > .callout.warn a[href="/billing"]`) {
			t.Errorf("%s does not tell", path)
		}
		if path == "/billing" {
			continue
		}
		if said := viewer.Get(path).Text("main > .callout.warn"); !strings.Contains(said, used) || !strings.Contains(said, "Ask an owner") {
			t.Errorf("%s tells a viewer %q", path, said)
		}
	}
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: s.front, Theme: "light", Cookies: person.Cookies()})
	for _, path := range []string{"/overview", "/keys", "/billing"} {
		tab.Go(path)
		tab.CheckLooks("over quota " + path[1:])
	}
	if said := s.attention(person); !strings.Contains(said, "This month’s exchanges are used up") || !strings.Contains(said, "Open billing") {
		t.Errorf("what needs attention: %q", said)
	}
}

// While Stripe is down the page shows what is known, and says what is not.
func TestPageStandsWithoutStripe(t *testing.T) {
	t.Parallel()
	s := billingOpen(t, 0)
	person := s.SignUp(t, "northbeam")
	s.buy(t, person)
	s.double.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadRequest) // which the library does not try again
		return true
	}
	page := person.Get("/billing")
	if page.Status != http.StatusOK || page.TestID("state") != "Active" || page.Find(`[data-testid="failed"]`).Length() != 2 {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	if page := person.Post("/billing/portal"); page.Status != http.StatusBadGateway || !strings.Contains(page.Text("main"), "The proxy keeps working") {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
}

// What is kept here of the plan may fail too: the page says so, and so do no others.
func TestPageStandsWithoutThePlan(t *testing.T) {
	t.Parallel()
	s := billingOpen(t, 0)
	person := s.SignUp(t, "northbeam")
	if _, err := s.Database.Owner(t).Exec(t.Context(), "ALTER TABLE usage_meter RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	page := person.Get("/billing")
	if failed := page.TestID("failed"); page.Status != http.StatusOK || !strings.Contains(failed, "The plan did not load") || !strings.Contains(failed, "Reference ") ||
		page.Find(`[data-testid="failed"] a`).AttrOr("href", "") != "/billing" || page.Has(`[data-testid="state"]`) {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	if page := person.Get("/overview"); page.Status != http.StatusOK || page.Has(`[data-testid="failed"]`) {
		t.Errorf("the overview: status %d: %s", page.Status, page.Text("main"))
	}
}

// attention returns what a person's overview says needs attention.
func (s *shop) attention(person *webtest.Person) string {
	return person.Get("/overview").TestID("attention")
}

func TestFailedPaymentNeedsAttentionWithItsDate(t *testing.T) {
	t.Parallel()
	s := billingOpen(t, 0)
	person := s.SignUp(t, "northbeam")
	customer := s.buy(t, person)
	s.use(t, person, 1)
	if said := s.attention(person); strings.Contains(said, "payment") {
		t.Errorf("a plan that is paid needs attention: %s", said)
	}
	s.double.SetCard(customer, true)
	s.double.Advance(s.double.Now().AddDate(0, 1, 1))
	account := s.read(t, person)
	failed, deadline := account.PastDueSince.UTC().Format("2 Jan 2006"), account.Deadline(14*24*time.Hour).UTC().Format("2 Jan 2006")
	page := person.Get("/overview")
	for _, part := range []string{"A payment failed", "Everything works as before until " + deadline, "It failed: " + failed, "Open billing"} {
		if said := page.TestID("attention"); !strings.Contains(said, part) {
			t.Errorf("%q is not in %q", part, said)
		}
	}
	if path := page.Find(`[data-testid="attention"] li:first-child a`).AttrOr("href", ""); path != "/billing" {
		t.Errorf("it leads to %q", path)
	}
	viewer := person.Colleague(tenants.Viewer).Get("/overview")
	if said := viewer.TestID("attention"); !strings.Contains(said, "A payment failed") || !strings.Contains(said, "Ask an owner") || viewer.Has(`main a[href="/billing"]`) {
		t.Errorf("a viewer reads %q", said)
	}
}

func TestCheckoutThatCannotBeIsExplained(t *testing.T) {
	t.Parallel()
	s := billingOpen(t, 0)
	person := s.SignUp(t, "northbeam")
	for plan, status := range map[string]int{"free": http.StatusUnprocessableEntity, "": http.StatusUnprocessableEntity} {
		if page := person.Post("/billing/checkout", "plan", plan); page.Status != status || !page.Has(".callout.bad") {
			t.Errorf("%q: status %d", plan, page.Status)
		}
	}
	if page := person.Post("/billing/portal"); page.Status != http.StatusNotFound || !page.Has(".callout.bad") {
		t.Errorf("the portal of nobody: status %d", page.Status)
	}
	s.buy(t, person)
	if page := person.Post("/billing/checkout", "plan", "team"); page.Status != http.StatusConflict || !page.Has(".callout.bad") {
		t.Errorf("a second subscription: status %d", page.Status)
	}
}

// A person buys a plan in a browser: from the page to Stripe's checkout and back.
func TestPlanIsBoughtInABrowser(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	s := billingOpen(t, 0)
	person := s.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: s.front, Cookies: person.Cookies()})
	tab.Go("/billing")
	tab.Click(`button[value="pro"]`)
	tab.Click("#pay")
	tab.See(`[data-testid="state"]`)
	if state, usage := tab.Text(`[data-testid="state"]`), tab.Text(`[data-testid="usage"]`); state != "Active" || !strings.Contains(usage, "50,000") {
		t.Errorf("state %q, usage %q", state, usage)
	}
	tab.Check("billing active")
	tab.Click(`form[action="/billing/portal"] button`)
	tab.Click("#cancel")
	tab.See(`[data-testid="state"]`)
	if account := s.read(t, person); account.EndsAt.IsZero() || account.Plan != billing.Pro {
		t.Errorf("%+v", account.State)
	}
}
