package billing

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"

	"palimpsest/tenants"
)

// answers is Stripe with fixed lists: objects in JSON, by path. Each object is a page of its own, so
// that reading has to follow the pages.
type answers struct {
	lists map[string][]string

	mu    sync.Mutex
	asked []string // methods and paths
}

// ServeHTTP implements http.Handler.
func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	a.mu.Unlock()
	objects, isList := a.lists[r.URL.Path]
	if !isList {
		_, _ = io.WriteString(w, `{"id":"done"}`)
		return
	}
	at := 0
	if after := r.FormValue("starting_after"); after != "" {
		at = 1 + slices.IndexFunc(objects, func(object string) bool { return strings.Contains(object, `"`+after+`"`) })
	}
	page := ""
	if at < len(objects) {
		page = objects[at]
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"has_more":%t,"url":%q}`, page, at+1 < len(objects), r.URL.Path)
}

// asking returns what asks Stripe with these answers.
func asking(t *testing.T, lists map[string][]string) (*gateway, *answers) {
	t.Helper()
	stripe := &answers{lists: lists}
	server := httptest.NewServer(stripe)
	t.Cleanup(server.Close)
	return newGateway(Config{APIKey: "sk_test", APIBase: server.URL, Meter: "mtr_1"}), stripe
}

// each runs a test with a list in both orders.
func each(t *testing.T, list []string, test func(t *testing.T, list []string)) {
	t.Helper()
	test(t, list)
	backwards := slices.Clone(list)
	slices.Reverse(backwards)
	test(t, backwards)
}

// The oldest invoice that was tried and is not paid counts, wherever it stands.
func TestOldestOpenInvoiceCounts(t *testing.T) {
	t.Parallel()
	invoice := func(id string, created, finalized int64, attempted, paid bool) string {
		return fmt.Sprintf(`{"id":%q,"created":%d,"attempted":%t,"paid":%t,"status_transitions":{"finalized_at":%d}}`, id, created, attempted, paid, finalized)
	}
	each(t, []string{
		invoice("in_not_tried", 100, 0, false, false), invoice("in_paid", 200, 0, true, true), invoice("in_finalized", 250, 400, true, false),
		invoice("in_oldest", 300, 0, true, false), invoice("in_newest", 500, 0, true, false),
	}, func(t *testing.T, list []string) {
		t.Helper()
		stripe, _ := asking(t, map[string][]string{"/v1/invoices": list})
		if since, err := stripe.owedSince(t.Context(), "sub_1"); err != nil || since.Unix() != 300 {
			t.Errorf("owed since %d, %v", since.Unix(), err)
		}
	})
	stripe, _ := asking(t, map[string][]string{"/v1/invoices": nil})
	if since, err := stripe.owedSince(t.Context(), "sub_1"); err != nil || !since.IsZero() {
		t.Errorf("owed since %s, %v", since, err)
	}
}

// Of several subscriptions the newest that gives a plan decides, and without one the newest.
func TestNewestLiveSubscriptionDecides(t *testing.T) {
	t.Parallel()
	subscription := func(id, status string, created int64) string {
		return fmt.Sprintf(`{"id":%q,"status":%q,"created":%d}`, id, status, created)
	}
	ended := []string{subscription("sub_ended", "canceled", 900), subscription("sub_ended_before", "canceled", 100)}
	for want, list := range map[string][]string{
		"sub_newest": append([]string{subscription("sub_older", "active", 200), subscription("sub_newest", "past_due", 300), subscription("sub_begun", "incomplete", 950), subscription("sub_expired", "incomplete_expired", 960)}, ended...),
		"sub_ended":  ended,
		"sub_twin_b": {subscription("sub_twin_a", "active", 200), subscription("sub_twin_b", "active", 200)},
		"":           {subscription("sub_begun", "incomplete", 950)},
	} {
		each(t, list, func(t *testing.T, list []string) {
			t.Helper()
			stripe, _ := asking(t, map[string][]string{"/v1/subscriptions": list})
			found, err := stripe.subscription(t.Context(), "cus_1")
			id := ""
			if found != nil {
				id = found.ID
			}
			if err != nil || id != want {
				t.Errorf("%q decides, %v, want %q", id, err, want)
			}
		})
	}
}

// All parts of an hour add up.
func TestReportedUsageIsTheSumOfAllParts(t *testing.T) {
	t.Parallel()
	each(t, []string{`{"id":"part_1","aggregated_value":5}`, `{"id":"part_2","aggregated_value":7}`, `{"id":"part_3","aggregated_value":0}`}, func(t *testing.T, list []string) {
		t.Helper()
		stripe, _ := asking(t, map[string][]string{"/v1/billing/meters/mtr_1/event_summaries": list})
		if sum, err := stripe.reported(t.Context(), "cus_1", time.Unix(3600, 0)); err != nil || sum != 12 {
			t.Errorf("%d, %v, want 12", sum, err)
		}
	})
}

// Each subscription and each open checkout of a customer ends.
func TestAllSubscriptionsAndCheckoutsEnd(t *testing.T) {
	t.Parallel()
	stripe, seen := asking(t, map[string][]string{
		"/v1/checkout/sessions": {`{"id":"cs_1"}`, `{"id":"cs_2"}`}, "/v1/subscriptions": {`{"id":"sub_1"}`, `{"id":"sub_2"}`, `{"id":"sub_3"}`},
	})
	ended, err := stripe.end(t.Context(), "cus_1")
	if err != nil || ended != 3 {
		t.Errorf("%d ended, %v", ended, err)
	}
	for _, call := range []string{"POST /v1/checkout/sessions/cs_1/expire", "POST /v1/checkout/sessions/cs_2/expire", "DELETE /v1/subscriptions/sub_1", "DELETE /v1/subscriptions/sub_2", "DELETE /v1/subscriptions/sub_3"} {
		if !slices.Contains(seen.asked, call) {
			t.Errorf("%s was not called, only %v", call, seen.asked)
		}
	}
}

// Drafts are not shown, and an invoice shows its total, not the amount that is left to pay.
func TestInvoicesShowTheirTotals(t *testing.T) {
	t.Parallel()
	stripe, _ := asking(t, map[string][]string{"/v1/invoices": {`{"id":"in_1","number":"A-1","status":"draft","total":100,"amount_due":100,"currency":"usd"}`}})
	if invoices, err := stripe.invoices(t.Context(), "cus_1"); err != nil || len(invoices) != 0 {
		t.Errorf("a draft: %+v, %v", invoices, err)
	}
	stripe, _ = asking(t, map[string][]string{"/v1/invoices": {`{"id":"in_2","number":"A-2","status":"open","created":60,"total":2000,"amount_due":500,"amount_paid":1500,"currency":"jpy"}`}})
	want := Invoice{Number: "A-2", At: time.Unix(60, 0).UTC(), Total: 2000, Currency: "jpy", Status: "open"}
	if invoices, err := stripe.invoices(t.Context(), "cus_1"); err != nil || !slices.Equal(invoices, []Invoice{want}) {
		t.Errorf("%+v, %v", invoices, err)
	}
}

// Every price of a plan is known as the plan's, not only the one that is sold.
func TestEveryPriceOfAPlanIsKnown(t *testing.T) {
	t.Parallel()
	catalog := Catalog{Pro: Prices{Plan: []string{"pro_new", "pro_old", "pro_oldest"}, Usage: "pro_usage"}, Team: Prices{Plan: []string{"team_new", "team_old"}}}
	for price, want := range map[string]Plan{
		"pro_new": Pro, "pro_old": Pro, "pro_oldest": Pro, "team_new": Team, "team_old": Team, "pro_usage": "", "other": "", "": "",
	} {
		if got, known := catalog.planOf(price); got != want || known != (want != "") {
			t.Errorf("%q is of %q, %t, want %q", price, got, known, want)
		}
	}
}

// An amount of less than the smallest unit has the point of its currency.
func TestFractionsAreWrittenAsTheirCurrencyIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		smallest float64
		currency string
		want     string
	}{{0.2, "usd", "0.002 USD"}, {0.2, "jpy", "0.2 JPY"}, {0.2, "KWD", "0.0002 KWD"}, {150, "eur", "1.5 EUR"}} {
		if got := fraction(c.smallest, c.currency); got != c.want {
			t.Errorf("%g %s: %q, want %q", c.smallest, c.currency, got, c.want)
		}
	}
}

// Traffic is restrained above the quota and from the deadline on, not before and not at it.
func TestRestraintBeginsAtItsMoment(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)
	const grace = 14 * 24 * time.Hour
	owes, free := State{Plan: Pro, Status: PastDue, PastDueSince: since}, State{Plan: Free}
	for name, c := range map[string]struct {
		state State
		now   time.Time
		used  int64
		want  tenants.Reason
	}{
		"just before the deadline":      {owes, since.Add(grace - 1), 0, tenants.Unrestrained},
		"at the deadline":               {owes, since.Add(grace), 0, tenants.PaymentFailed},
		"unpaid":                        {State{Plan: Pro, Status: Unpaid, PastDueSince: since}, since.Add(grace), 0, tenants.PaymentFailed},
		"active again":                  {State{Plan: Pro, Status: Active, PastDueSince: since}, since.Add(2 * grace), 0, tenants.Unrestrained},
		"the quota itself":              {free, since, FreeExchanges, tenants.Unrestrained},
		"one above":                     {free, since, FreeExchanges + 1, tenants.QuotaUsed},
		"above the quota on a plan":     {State{Plan: Pro, Status: Active}, since, FreeExchanges + 1, tenants.Unrestrained},
		"above, and a payment is owed":  {State{Plan: Free, Status: Unpaid, PastDueSince: since}, since.Add(grace), FreeExchanges + 1, tenants.PaymentFailed},
		"owes since an unknown moment":  {State{Plan: Pro, Status: PastDue}, since, 0, tenants.Unrestrained},
		"above, and canceled long ago":  {State{Plan: Free, Status: Canceled, EndsAt: since}, since, FreeExchanges + 1, tenants.QuotaUsed},
		"a payment failed this instant": {owes, since, 0, tenants.Unrestrained},
	} {
		if got := c.state.restraint(c.now, c.used, grace); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := owes.restraint(since, 0, 0); got != tenants.PaymentFailed {
		t.Errorf("without grace: %q", got)
	}
}

// Usage counts in the month of UTC on the plan Free, and from the end of a plan within it.
func TestSpanOfUsageIsTheMonthOrThePeriod(t *testing.T) {
	t.Parallel()
	at := func(month time.Month, day int) time.Time { return time.Date(2027, month, day, 0, 0, 0, 0, time.UTC) }
	west := time.FixedZone("west", -10*3600)
	for name, c := range map[string]struct {
		state    State
		now      time.Time
		from, to time.Time
	}{
		"free":                  {State{Plan: Free}, at(2, 15), at(2, 1), at(3, 1)},
		"the first moment":      {State{Plan: Free}, at(2, 1), at(2, 1), at(3, 1)},
		"the last moment":       {State{Plan: Free}, at(3, 1).Add(-1), at(2, 1), at(3, 1)},
		"in the west":           {State{Plan: Free}, time.Date(2027, 2, 28, 20, 0, 0, 0, west), at(3, 1), at(4, 1)},
		"december":              {State{Plan: Free}, at(12, 31), at(12, 1), at(13, 1)},
		"a plan":                {State{Plan: Pro, Status: Active, PeriodStart: at(1, 20), PeriodEnd: at(2, 20)}, at(2, 15), at(1, 20), at(2, 20)},
		"a plan ended in it":    {State{Plan: Free, Status: Canceled, EndsAt: at(2, 10)}, at(2, 15), at(2, 10), at(3, 1)},
		"a plan ended before":   {State{Plan: Free, Status: Canceled, EndsAt: at(1, 10)}, at(2, 15), at(2, 1), at(3, 1)},
		"a plan that will end":  {State{Plan: Pro, Status: Active, PeriodStart: at(1, 20), PeriodEnd: at(2, 20), EndsAt: at(2, 20)}, at(2, 15), at(1, 20), at(2, 20)},
		"ended this very month": {State{Plan: Free, Status: Canceled, EndsAt: at(2, 1)}, at(2, 15), at(2, 1), at(3, 1)},
	} {
		if from, to := c.state.span(c.now); !from.Equal(c.from) || !to.Equal(c.to) {
			t.Errorf("%s: %s to %s, want %s to %s", name, from, to, c.from, c.to)
		}
	}
}

// A list that ends early is an error, not the part that came.
func TestListThatEndsEarlyIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("starting_after") != "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","message":"planned failure"}}`)
			return
		}
		fmt.Fprintf(w, `{"object":"list","data":[{"id":"one","status":"active","attempted":true,"created":1,"aggregated_value":5}],"has_more":true,"url":%q}`, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	stripe := newGateway(Config{APIKey: "sk_test", APIBase: server.URL, Meter: "mtr_1"})
	for name, ask := range map[string]func(ctx context.Context) error{
		"subscriptions": func(ctx context.Context) error { _, err := stripe.subscription(ctx, "cus_1"); return err },
		"invoices":      func(ctx context.Context) error { _, err := stripe.owedSince(ctx, "sub_1"); return err },
		"usage": func(ctx context.Context) error {
			_, err := stripe.reported(ctx, "cus_1", time.Unix(3600, 0))
			return err
		},
		"ends": func(ctx context.Context) error { _, err := stripe.end(ctx, "cus_1"); return err },
	} {
		if err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), "planned failure") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of a subscription whose prices are sold no longer the licensed item is the one that is bought, not
// the metered one, in either order.
func TestLicensedItemIsWhatWasBought(t *testing.T) {
	t.Parallel()
	item := func(id string, usage stripe.PriceRecurringUsageType, quantity int64) *stripe.SubscriptionItem {
		return &stripe.SubscriptionItem{ID: id, Quantity: quantity, Price: &stripe.Price{ID: "price of " + id, Recurring: &stripe.PriceRecurring{UsageType: usage}}}
	}
	metered, licensed := item("metered", stripe.PriceRecurringUsageTypeMetered, 0), item("licensed", stripe.PriceRecurringUsageTypeLicensed, 3)
	service := &Service{config: Config{Catalog: Catalog{Team: Prices{Plan: []string{"price of a newer one"}}}}}
	for _, items := range [][]*stripe.SubscriptionItem{{metered, licensed}, {licensed, metered}} {
		found := &stripe.Subscription{ID: "sub_1", Items: &stripe.SubscriptionItemList{Data: items}, Metadata: map[string]string{"plan": "team"}}
		if plan, bought, err := service.bought(found); err != nil || plan != Team || bought != licensed {
			t.Errorf("%s is bought for %q, %v", bought.ID, plan, err)
		}
		if !isMetered(found) {
			t.Error("its usage is not metered")
		}
		found.Metadata["plan"] = "free"
		if _, _, err := service.bought(found); err == nil {
			t.Error("a plan that is not sold is bought")
		}
	}
	if _, _, err := service.bought(&stripe.Subscription{Items: &stripe.SubscriptionItemList{Data: []*stripe.SubscriptionItem{metered}}, Metadata: map[string]string{"plan": "team"}}); err == nil {
		t.Error("usage alone is a plan")
	}
}

// A subscription ends when it has ended, or else on the day that it is set to, or else with its period.
func TestEndOfASubscriptionIsItsMostCertainOne(t *testing.T) {
	t.Parallel()
	service := &Service{config: Config{Catalog: Catalog{Pro: Prices{Plan: []string{"price_pro"}}}}}
	for name, c := range map[string]struct {
		ended, at int64
		isLast    bool
		want      int64
	}{
		"goes on":                       {0, 0, false, 0},
		"with its period":               {0, 0, true, 300},
		"on a day":                      {0, 250, false, 250},
		"on a day of its last period":   {0, 250, true, 250},
		"ended in its last period":      {200, 0, true, 200},
		"ended before the day it named": {200, 250, false, 200},
	} {
		state, err := service.stateOf(&stripe.Subscription{
			ID: "sub_1", Status: stripe.SubscriptionStatusActive, CurrentPeriodStart: 100, CurrentPeriodEnd: 300,
			EndedAt: c.ended, CancelAt: c.at, CancelAtPeriodEnd: c.isLast,
			Items: &stripe.SubscriptionItemList{Data: []*stripe.SubscriptionItem{{ID: "si_1", Quantity: 1, Price: &stripe.Price{ID: "price_pro"}}}},
		})
		if err != nil || !state.EndsAt.Equal(unix(c.want)) || state.Plan != Pro {
			t.Errorf("%s: %s ends at %s, want %s (%v)", name, state.Plan, state.EndsAt, unix(c.want), err)
		}
	}
}

// Stripe may close an invoice that nobody has paid. The debt then counts from the start of the period.
func TestDebtOfAClosedInvoiceCountsFromItsPeriod(t *testing.T) {
	t.Parallel()
	gateway, _ := asking(t, map[string][]string{
		"/v1/subscriptions": {`{"id":"sub_1","status":"past_due","created":50,"current_period_start":100,"current_period_end":300,
			"items":{"object":"list","data":[{"id":"si_1","quantity":1,"price":{"id":"price_pro"}}]}}`},
		"/v1/invoices": nil,
	})
	service := &Service{config: Config{Catalog: Catalog{Pro: Prices{Plan: []string{"price_pro"}}}}, stripe: gateway}
	if state, err := service.read(t.Context(), Account{Customer: "cus_1"}); err != nil || !state.PastDueSince.Equal(unix(100)) {
		t.Errorf("owed since %s, %v", state.PastDueSince, err)
	}
}

// An account is looked at again when it changes on its own: at the end of its period or of its grace. A team
// is looked at each minute, because its members change.
func TestAccountIsLookedAtAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	const grace = 14 * 24 * time.Hour
	now := time.Date(2027, 2, 28, 18, 0, 0, 0, time.UTC)
	month := State{Plan: Pro, Status: Active, PeriodStart: now.AddDate(0, 0, -10), PeriodEnd: now.AddDate(0, 0, 20)}
	owing := month
	owing.Status, owing.PastDueSince = PastDue, now.Add(2*time.Hour-grace)
	late := owing
	late.PastDueSince = now.Add(-2 * grace)
	team, ended := month, month
	team.Plan, ended.PeriodEnd = Team, now.Add(-time.Hour)
	for name, c := range map[string]struct {
		state State
		after time.Duration
	}{
		"the month ends":     {State{Plan: Free}, 6 * time.Hour},
		"nothing ends soon":  {month, lookEvery},
		"the grace ends":     {owing, 2 * time.Hour},
		"the grace is over":  {late, lookEvery},
		"the period is over": {ended, lookEvery},
		"a team":             {team, seatsEvery},
	} {
		if got := (Account{State: c.state}).lookAgain(now, grace); !got.Equal(now.Add(c.after)) {
			t.Errorf("%s: after %s, want %s", name, got.Sub(now), c.after)
		}
	}
}
