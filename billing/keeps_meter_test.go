package billing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/billing"
)

// metered has the workspace's usage told to Stripe from noon on, for so many hours.
func (b bundle) metered(t *testing.T, hours int) {
	t.Helper()
	if _, err := b.store.KeepCustomer(t.Context(), b.workspace.ID, "cus_1"); err != nil {
		t.Fatal(err)
	}
	state := billing.State{Plan: billing.Pro, Status: billing.Active, MeteredFrom: noon}
	if hours > 0 {
		state.MeteredTo = noon.Add(time.Duration(hours) * time.Hour)
	}
	b.keep(t, state)
}

func (b bundle) unsent(t *testing.T) []billing.MeterEvent {
	t.Helper()
	events, err := b.store.Unsent(t.Context(), b.workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// Usage is told from the hour in which metering begins until the one in which it ends, which is
// not, the oldest first.
func TestOnlyUsageBetweenBothEndsOfMeteringIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.metered(t, 2)
	for hour := -1; hour <= 3; hour++ {
		b.use(t, hour+5, noon.Add(time.Duration(hour)*time.Hour))
	}
	if err := b.store.CutEvents(t.Context(), b.workspace.ID); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, event := range b.unsent(t) {
		fmt.Fprintf(&got, "%s %s %d, ", event.Customer, event.At.Format("15:04"), event.Exchanges)
	}
	if want := "cus_1 12:00 5, cus_1 13:00 6, "; got.String() != want {
		t.Errorf("told %s\nwant %s", got.String(), want)
	}
}

// Two processes that cut events at once cut each exchange into one.
func TestUsageIsCutOnceByManyProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.metered(t, 0)
	b.use(t, 3, noon)
	if err := b.database.DB.Usage.FoldSums(t.Context()); err != nil { // so that there is a row to lock
		t.Fatal(err)
	}
	cut := func() error { return b.store.CutEvents(t.Context(), b.workspace.ID) }
	for _, err := range b.whileLocked(t, "SELECT FROM usage_meter WHERE workspace_id = $1 FOR UPDATE", cut, cut) {
		if err != nil {
			t.Error(err)
		}
	}
	if events := b.unsent(t); len(events) != 1 || events[0].Exchanges != 3 {
		t.Errorf("cut %+v", events)
	}
}

// What Stripe has is not changed any more, and is counted by its customer and hour.
func TestEventThatWasSentIsNotChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.metered(t, 0)
	for hour := range 2 {
		b.use(t, hour+1, noon.Add(time.Duration(hour)*time.Hour))
	}
	if err := b.store.CutEvents(t.Context(), b.workspace.ID); err != nil {
		t.Fatal(err)
	}
	for _, event := range b.unsent(t) {
		if err := b.store.Sent(t.Context(), b.workspace.ID, event.ID, noon); err != nil {
			t.Fatal(err)
		}
		if err := b.store.Sent(t.Context(), b.workspace.ID, event.ID, noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		event.At, event.TriedAt = event.At.Add(24*time.Hour), noon
		if err := b.store.Trying(t.Context(), b.workspace.ID, event); err != nil {
			t.Fatal(err)
		}
	}
	var first int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM meter_events WHERE sent_at = $1", noon).Scan(&first); err != nil || first != 2 {
		t.Errorf("%d events were sent when they were, %v", first, err)
	}
	for _, asked := range []struct {
		customer string
		at       time.Time
		want     int64
	}{{"cus_1", noon, 1}, {"cus_1", noon.Add(time.Hour), 2}, {"cus_1", noon.Add(2 * time.Hour), 0}, {"cus_2", noon, 0}} {
		if sent, err := b.store.SentAt(t.Context(), b.workspace.ID, asked.customer, asked.at); err != nil || sent != asked.want {
			t.Errorf("%s at %s: %d sent, %v; want %d", asked.customer, asked.at, sent, err, asked.want)
		}
	}
}

// An end that fails counts its attempts, and operators are told once of one that is closed.
func TestEndOfASubscriptionIsClosedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.store.KeepCustomer(t.Context(), b.workspace.ID, "cus_1"); err != nil {
		t.Fatal(err)
	}
	if err := b.store.AskEnd(t.Context(), b.workspace.ID, billing.End{ID: uuid.New(), Customer: "cus_1", AskedAt: noon}); err != nil {
		t.Fatal(err)
	}
	for attempt := range 3 {
		at := noon.Add(time.Duration(attempt) * time.Hour)
		if early, err := b.store.DueEnds(t.Context(), at.Add(-time.Microsecond), 10); err != nil || len(early) != 0 {
			t.Errorf("due early: %+v, %v", early, err)
		}
		due, err := b.store.DueEnds(t.Context(), at, 10)
		if err != nil || len(due) != 1 || due[0].Attempts != attempt || due[0].Customer != "cus_1" || !due[0].AskedAt.Equal(noon) {
			t.Fatalf("due after %d attempts: %+v, %v", attempt, due, err)
		}
		if err := b.store.DelayEnd(t.Context(), due[0].ID, at.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	due, err := b.store.DueEnds(t.Context(), noon.Add(24*time.Hour), 10)
	if err != nil || len(due) != 1 {
		t.Fatalf("%+v, %v", due, err)
	}
	for range 2 {
		if err := b.store.CloseEnd(t.Context(), due[0], true, "1 subscriptions ended"); err != nil {
			t.Fatal(err)
		}
	}
	if noted := b.noted(t); len(noted) != 1 || b.ends(t) != 0 {
		t.Errorf("noted %+v, %d ends are left", noted, b.ends(t))
	}
}
