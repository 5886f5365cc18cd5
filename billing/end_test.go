package billing_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/billing"
	"palimpsest/billing/billingdb"
	"palimpsest/billing/stripetest"
	"palimpsest/tenants"
)

// leave deletes the workspace, as people do, and has the rest of it erased.
func (b bundle) leave(t *testing.T) {
	t.Helper()
	db := b.database.DB
	err := db.Deletion.CloseWorkspace(t.Context(), b.workspace.ID, func(tenant tenants.Tenant) error { return b.Leave(t.Context(), tenant) })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Deletion.EraseSessions(t.Context(), b.workspace.ID), db.Deletion.EraseWorkspace(t.Context(), b.workspace.ID)); err != nil {
		t.Fatal(err)
	}
}

// ending does what is due of ending subscriptions.
func (b bundle) ending(t *testing.T) {
	t.Helper()
	if err := b.EndPass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ends returns how many customers' subscriptions are still to end.
func (b bundle) ends(t *testing.T) (count int) {
	t.Helper()
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM subscription_ends").Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

// noted returns what the operators' log says of subscriptions, the newest first.
func (b bundle) noted(t *testing.T) []tenants.OperatorEntry {
	t.Helper()
	var operator uuid.UUID
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT user_id FROM operators").Scan(&operator); err != nil {
		t.Fatal(err)
	}
	all, err := b.database.DB.Operators.OperatorLog(t.Context(), operator, 50)
	if err != nil {
		t.Fatal(err)
	}
	var found []tenants.OperatorEntry
	for _, entry := range all {
		if strings.HasPrefix(string(entry.Action), "subscription.") {
			found = append(found, entry)
		}
	}
	return found
}

// live returns how many subscriptions of a customer run at Stripe.
func (b bundle) live(t *testing.T) int {
	t.Helper()
	created, deleted := 0, 0
	for _, event := range b.double.Events() {
		switch event.Type {
		case "customer.subscription.created":
			created++
		case "customer.subscription.deleted":
			deleted++
		}
	}
	return created - deleted
}

// S31: with its workspace a subscription ends, what was used is billed, and a checkout
// that is still open cannot be paid any more. The deletion asks Stripe nothing.
func TestSubscriptionEndsWithItsWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	b.use(t, 7, noon)
	b.pass(t)
	open, err := b.double.Open(customer)
	if err != nil {
		t.Fatal(err)
	}
	calls := len(b.double.Calls())
	b.leave(t)
	if got := len(b.double.Calls()); got != calls {
		t.Errorf("the deletion asked Stripe %d times", got-calls)
	}
	if b.live(t) != 1 || b.ends(t) != 1 {
		t.Fatalf("%d subscriptions run, %d ends wait", b.live(t), b.ends(t))
	}
	for range 2 { // S28
		b.ending(t)
	}
	if b.live(t) != 0 || b.ends(t) != 0 {
		t.Errorf("%d subscriptions run, %d ends wait", b.live(t), b.ends(t))
	}
	if err := b.double.Pay(open); err == nil {
		t.Error("a checkout from before can still be paid")
	}
	if got := b.noted(t); len(got) != 1 || got[0].Action != tenants.SubscriptionEnded || got[0].Target != customer || got[0].Actor != "billing" {
		t.Errorf("the operators read %+v", got)
	}
	b.double.Advance(noon.AddDate(0, 3, 0))
	if b.live(t) != 0 {
		t.Error("it goes on")
	}
}

// While Stripe is down the workspace is deleted all the same; its subscription ends once
// Stripe answers, also where an answer was lost.
func TestEndOfASubscriptionIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.buy(t, "pro")
	b.double.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		stripetest.Refuse(w, http.StatusBadRequest)
		return true
	}
	b.leave(t)
	b.ending(t)
	if b.ends(t) != 1 || b.live(t) != 1 {
		t.Fatalf("%d ends wait, %d subscriptions run", b.ends(t), b.live(t))
	}
	before := len(b.double.Calls())
	b.ending(t) // not due yet
	if got := len(b.double.Calls()); got != before {
		t.Errorf("Stripe is asked again at once: %d times", got-before)
	}
	b.double.Before = nil
	b.double.After = func(r *http.Request) bool { return r.Method != http.MethodDelete } // it ended, and nobody heard
	b.double.SetNow(b.double.Now().Add(time.Minute))
	b.ending(t)
	if b.ends(t) != 1 || b.live(t) != 0 {
		t.Fatalf("%d ends wait, %d subscriptions run", b.ends(t), b.live(t))
	}
	b.double.After = nil
	b.double.SetNow(b.double.Now().Add(3 * time.Minute))
	b.ending(t)
	if got := b.noted(t); b.ends(t) != 0 || len(got) != 1 || got[0].Action != tenants.SubscriptionEnded {
		t.Errorf("%d ends wait, the operators read %+v", b.ends(t), got)
	}
}

// What does not end for a month is told to the operators, who end it by hand.
func TestEndThatStripeRefusesIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	b.leave(t)
	b.double.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		stripetest.Refuse(w, http.StatusForbidden)
		return true
	}
	tries := 0
	for b.ends(t) > 0 {
		if tries++; tries > 200 {
			t.Fatal("it is tried for ever")
		}
		b.ending(t)
		b.double.SetNow(b.double.Now().Add(6 * time.Hour))
	}
	got := b.noted(t)
	if len(got) != 1 || got[0].Action != tenants.SubscriptionNotEnded || got[0].Target != customer || !strings.Contains(got[0].Reason, "end them there") {
		t.Errorf("after %d tries the operators read %+v", tries, got)
	}
	if tries < 100 {
		t.Errorf("abandoned after %d tries", tries)
	}
}

// A workspace that bought nothing leaves nothing to do, and one that is not deleted
// after all keeps its subscription.
func TestNothingEndsThatNobodyLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.Leave(t.Context(), b.workspace.ID); err != nil || b.ends(t) != 0 {
		t.Errorf("%d ends, %v", b.ends(t), err)
	}
	b.buy(t, "pro")
	failed := errors.New("no job")
	err := b.database.DB.Deletion.CloseWorkspace(t.Context(), b.workspace.ID, func(tenant tenants.Tenant) error {
		return errors.Join(b.Leave(t.Context(), tenant), failed)
	})
	if !errors.Is(err, failed) || b.ends(t) != 0 {
		t.Errorf("%d ends of a deletion that failed: %v", b.ends(t), err)
	}
	off := billing.New(billing.DefaultConfig(), billing.Deps{Now: time.Now})
	if err := off.Leave(t.Context(), b.workspace.ID); err != nil {
		t.Errorf("without billing: %v", err)
	}
	if err := off.EndPass(t.Context()); err != nil {
		t.Errorf("without billing: %v", err)
	}
}

// S32: who opened checkout or the portal stands in the audit log.
func TestOpeningCheckoutAndPortalIsNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := tenants.WithActor(t.Context(), tenants.Actor{Name: "ada@example.com"})
	if _, err := b.Checkout(ctx, b.workspace, "ada@example.com", "team"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Portal(ctx, b.workspace.ID); err != nil {
		t.Fatal(err)
	}
	entries, err := b.database.DB.Audit.Audit(ctx, b.workspace.ID, tenants.AuditFilter{Limit: 2})
	if err != nil || len(entries) != 2 {
		t.Fatalf("%+v, %v", entries, err)
	}
	portal, checkout := entries[0], entries[1]
	if portal.Action != tenants.PortalOpened || checkout.Action != tenants.CheckoutOpened || checkout.After["plan"] != "team" || checkout.After["seats"] != "1" ||
		checkout.Actor.Name != "ada@example.com" || portal.Actor.Name != "ada@example.com" {
		t.Errorf("noted %+v and %+v", checkout, portal)
	}
}

// The database only takes a workspace's own Stripe customer.
func TestWorkspaceCannotEndAnothersSubscription(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.buy(t, "pro")
	_, other, err := b.database.DB.Accounts.SignUp(t.Context(), "eve@example.com", "hash", "theirs")
	if err != nil {
		t.Fatal(err)
	}
	store := billingdb.New(b.database.DB)
	end := billing.End{ID: uuid.New(), Customer: customer, AskedAt: noon}
	if err := store.AskEnd(t.Context(), other.ID, end); err == nil || b.ends(t) != 0 {
		t.Errorf("%v; %d ends wait", err, b.ends(t))
	}
	if err := store.AskEnd(t.Context(), b.workspace.ID, end); err != nil || b.ends(t) != 1 {
		t.Errorf("its own: %v; %d ends wait", err, b.ends(t))
	}
}
