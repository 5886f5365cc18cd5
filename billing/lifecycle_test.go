package billing_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/billing"
	"palimpsest/billing/stripetest"
	"palimpsest/tenants"
)

func (b bundle) reason(t *testing.T) tenants.Reason {
	t.Helper()
	restraint, err := b.store.Restraint(t.Context(), b.workspace.ID)
	if err != nil || restraint.Since.IsZero() != (restraint.Reason == tenants.Unrestrained) {
		t.Fatalf("%+v (%v)", restraint, err)
	}
	return restraint.Reason
}

// A subscription's whole life: trial, active, past due, restrained, canceled.
func TestSubscriptionLivesThroughTrialDunningAndItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, func(config *billing.Config) { config.TrialDays = 14 })
	customer := b.buy(t, "pro")
	stages := []struct {
		at       time.Time
		declines bool
		status   billing.Status
		plan     billing.Plan
		reason   tenants.Reason
	}{
		{noon.AddDate(0, 0, 1), false, billing.Trialing, billing.Pro, tenants.Unrestrained},
		{noon.AddDate(0, 0, 15), false, billing.Active, billing.Pro, tenants.Unrestrained},
		{noon.AddDate(0, 1, 14).Add(time.Hour), true, billing.PastDue, billing.Pro, tenants.Unrestrained},
		{noon.AddDate(0, 1, 28).Add(-time.Hour), true, billing.PastDue, billing.Pro, tenants.Unrestrained},
		{noon.AddDate(0, 1, 28).Add(time.Hour), true, billing.PastDue, billing.Pro, tenants.PaymentFailed},
		{noon.AddDate(0, 2, 10), true, billing.Canceled, billing.Free, tenants.Unrestrained},
	}
	for _, stage := range stages {
		b.double.SetCard(customer, stage.declines)
		b.double.Advance(stage.at)
		b.deliver(t, b.double.Events()...)
		b.work(t)
		b.pass(t)
		got := b.account(t)
		if got.Status != stage.status || got.Plan != stage.plan || b.reason(t) != stage.reason {
			t.Errorf("%s: %s, %s, restrained by %q; want %s, %s, %q", stage.at, got.Plan, got.Status, b.reason(t), stage.plan, stage.status, stage.reason)
		}
	}
	subjects := make([]string, len(*b.mails))
	for i, mail := range *b.mails {
		subjects[i] = mail.To + ": " + mail.Subject
	}
	want := []string{"ada@example.com: A payment failed", "ada@example.com: Your requests now pass uncompressed"}
	if !slices.Equal(subjects, want) {
		t.Errorf("mails %v, want %v", subjects, want)
	}
	var queued int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM mails").Scan(&queued); err != nil || queued != len(want) {
		t.Errorf("%d mails are queued (%v)", queued, err)
	}
	entries, err := b.database.DB.Audit.Audit(t.Context(), b.workspace.ID, tenants.AuditFilter{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	var story []string
	for _, entry := range slices.Backward(entries) {
		if entry.Action == tenants.PlanChanged {
			story = append(story, entry.After["plan"]+" "+entry.After["status"])
		}
	}
	if got := strings.Join(story, ", "); got != "pro trialing, pro active, pro past_due, free canceled" {
		t.Errorf("the audit log tells %s", got)
	}
}

func TestPaymentWithinGraceAndAfterItLetsTrafficGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	b.double.SetCard(customer, true)
	b.double.Advance(noon.AddDate(0, 1, 1))
	b.read(t)
	since := b.account(t).PastDueSince
	overview := b.overview(t)
	if !since.Equal(noon.AddDate(0, 1, 0)) || !overview.Deadline.Equal(since.AddDate(0, 0, 14)) {
		t.Errorf("past due since %s, deadline %s", since, overview.Deadline)
	}
	if warning, is := overview.Warning(); !is || warning.Now || !warning.On.Equal(overview.Deadline) {
		t.Errorf("%+v", warning)
	}
	b.double.Advance(overview.Deadline)
	b.pass(t)
	if b.reason(t) != tenants.PaymentFailed {
		t.Fatal("the grace has no end")
	}
	if warning, _ := b.overview(t).Warning(); !warning.Now {
		t.Error("no one was notified")
	}
	b.double.PayOpen(customer)
	b.read(t)
	if _, is := b.overview(t).Warning(); is || b.reason(t) != tenants.Unrestrained {
		t.Error("it was paid")
	}
}

// Above its quota the plan Free is restrained until the month ends, and never blocked.
func TestFreePlanIsRestrainedAboveItsQuotaUntilTheMonthEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.use(t, billing.FreeExchanges, noon)
	b.pass(t)
	if overview := b.overview(t); b.reason(t) != tenants.Unrestrained || overview.Used != 5000 || overview.Quota != 5000 {
		t.Errorf("restrained at the quota itself: %+v", overview)
	}
	b.use(t, 1, noon)
	b.pass(t)
	warning, is := b.overview(t).Warning()
	if b.reason(t) != tenants.QuotaUsed || !is || !warning.On.Equal(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%s, %+v", b.reason(t), warning)
	}
	if len(*b.mails) != 1 || !strings.Contains((*b.mails)[0].Text, "1 April 2026") {
		t.Errorf("mails %+v", *b.mails)
	}
	for range 3 { // one mail a month
		b.use(t, 1, noon)
		b.pass(t)
	}
	b.double.SetNow(warning.On)
	b.pass(t)
	if b.reason(t) != tenants.Unrestrained || len(*b.mails) != 1 {
		t.Errorf("in the new month: %s, %d mails", b.reason(t), len(*b.mails))
	}
}

func TestPlanIsKeptUntilTheEndOfWhatWasPaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.buy(t, "pro")
	address, err := b.Portal(t.Context(), b.workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.double.Pay(address); err != nil { // the portal's one button
		t.Fatal(err)
	}
	b.read(t)
	if got := b.account(t); got.Plan != billing.Pro || !got.EndsAt.Equal(noon.AddDate(0, 1, 0)) {
		t.Errorf("%+v", got.State)
	}
	b.use(t, billing.FreeExchanges+1, noon) // on Pro: it counts against nothing later
	b.double.Advance(noon.AddDate(0, 1, 1))
	b.deliver(t, b.double.Events()...)
	b.work(t)
	b.pass(t)
	if got := b.account(t); got.Plan != billing.Free || got.Status != billing.Canceled || b.reason(t) != tenants.Unrestrained {
		t.Errorf("%+v, %s", got.State, b.reason(t))
	}
}

// Seats follow the members, and what is left of the period is paid pro rata.
func TestSeatsFollowTheMembers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "team")
	if seats := b.account(t).Seats; seats != 1 {
		t.Fatalf("%d seats", seats)
	}
	owner := b.database.Owner(t)
	for _, name := range []string{"bob", "eve"} {
		user, _, err := b.database.DB.Accounts.SignUp(t.Context(), name+"@example.com", "hash", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := owner.Exec(t.Context(), "INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, 'member')", b.workspace.ID, user.ID); err != nil {
			t.Fatal(err)
		}
	}
	half := noon.Add(noon.AddDate(0, 1, 0).Sub(noon) / 2)
	b.double.Advance(half)
	b.pass(t)
	if seats := b.account(t).Seats; seats != 3 {
		t.Fatalf("%d seats for three members", seats)
	}
	b.double.Advance(noon.AddDate(0, 1, 1))
	if got := b.double.Invoiced(customer); got != 3000+(2*3000/2)+3*3000 {
		t.Errorf("%d cents were billed", got)
	}
	if _, err := owner.Exec(t.Context(), "DELETE FROM members WHERE workspace_id = $1 AND role = 'member'", b.workspace.ID); err != nil {
		t.Fatal(err)
	}
	b.double.SetNow(b.double.Now().Add(2 * time.Minute))
	b.pass(t)
	if seats := b.account(t).Seats; seats != 1 {
		t.Errorf("%d seats for one member", seats)
	}
}

func TestNobodyPaysForTwoSubscriptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	if _, err := b.Checkout(t.Context(), b.workspace, "ada@example.com", "team"); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("a second checkout: %v", err)
	}
	b.double.SetCard(customer, true)
	b.double.Advance(noon.AddDate(0, 3, 0))
	b.double.SetCard(customer, false)
	if again := b.buy(t, "team"); again != customer || b.account(t).Plan != billing.Team || b.account(t).Status != billing.Active {
		t.Errorf("after the end: customer %s, %+v", again, b.account(t).State)
	}
}

func TestCheckoutRefusesWhatIsNotSold(t *testing.T) {
	t.Parallel()
	b := setup(t, func(config *billing.Config) { config.Catalog.Team = billing.Prices{} })
	for _, plan := range []string{"team", "free", "local", ""} {
		_, err := b.Checkout(t.Context(), b.workspace, "ada@example.com", plan)
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "plan" {
			t.Errorf("%q: %v", plan, err)
		}
	}
	if _, err := b.Portal(t.Context(), b.workspace.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("the portal of nobody: %v", err)
	}
	if len(b.double.Calls()) != 0 {
		t.Errorf("stripe was asked: %v", b.double.Calls())
	}
}

// A price that is sold no longer goes on to give its plan; one that nobody knows does not.
func TestOldPricesStayThePlanThatWasBought(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.buy(t, "pro")
	later := config(b.double)
	later.Catalog.Pro = billing.Prices{Plan: []string{"price_new", stripetest.ProPrice}}
	for _, prices := range [][]string{{"price_new", stripetest.ProPrice}, {"price_new"}} { // known by its id, by what checkout noted
		later.Catalog.Pro.Plan = prices
		service := billing.New(later, billing.Deps{Store: b.store, Now: b.double.Now})
		if err := service.Read(t.Context(), b.workspace.ID); err != nil || b.account(t).Plan != billing.Pro {
			t.Errorf("%v: %s (%v)", prices, b.account(t).Plan, err)
		}
	}
}

func TestWithoutStripeEverythingIsLocal(t *testing.T) {
	t.Parallel()
	off := billing.New(billing.DefaultConfig(), billing.Deps{Now: time.Now})
	overview, err := off.Overview(t.Context(), [16]byte{1})
	if err != nil || overview.Plan != billing.Local || overview.Quota != 0 || off.IsOn() {
		t.Errorf("%+v (%v)", overview, err)
	}
	if _, is := overview.Warning(); is {
		t.Error("warning without billing")
	}
	_, checkoutErr := off.Checkout(t.Context(), tenants.Workspace{}, "", "pro")
	_, portalErr := off.Portal(t.Context(), [16]byte{1})
	_, offersErr := off.Offers(t.Context())
	for _, err := range []error{checkoutErr, portalErr, offersErr, off.Receive(t.Context(), nil, "")} {
		if !errors.Is(err, tenants.ErrBillingOff) {
			t.Errorf("%v", err)
		}
	}
	if err := errors.Join(off.Pass(t.Context()), off.Returned(t.Context(), [16]byte{1})); err != nil {
		t.Error(err)
	}
}

func TestStripeMakesOffersAndInvoices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	offers, err := b.Offers(t.Context())
	want := []billing.Offer{
		{Plan: billing.Pro, Price: "20.00 USD each month", Included: stripetest.ProIncluded, Beyond: "0.01 USD"},
		{Plan: billing.Team, Price: "30.00 USD each month", Included: stripetest.TeamIncluded, Beyond: "0.01 USD"},
	}
	if err != nil || !slices.Equal(offers, want) {
		t.Errorf("%+v (%v)", offers, err)
	}
	calls := len(b.double.Calls())
	if _, err := b.Offers(t.Context()); err != nil || len(b.double.Calls()) != calls {
		t.Errorf("asked again (%v)", err)
	}
	b.buy(t, "pro")
	invoices, err := b.Invoices(t.Context(), b.account(t))
	if err != nil || len(invoices) != 1 || invoices[0].Total != 2000 || invoices[0].Currency != "usd" || invoices[0].Status != "paid" || invoices[0].Link == "" {
		t.Errorf("%+v (%v)", invoices, err)
	}
}
