package billing_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/billing"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// sql runs a statement as the owner of the database.
func (b bundle) sql(t *testing.T, statement string, values ...any) {
	t.Helper()
	if _, err := b.database.Owner(t).Exec(t.Context(), statement, values...); err != nil {
		t.Fatal(err)
	}
}

// keep keeps a state as the next reading, and returns the reading's number.
func (b bundle) keep(t *testing.T, state billing.State) int64 {
	t.Helper()
	reading, err := b.store.BeginReading(t.Context(), b.workspace.ID)
	if err == nil {
		err = b.store.KeepReading(t.Context(), b.workspace.ID, reading, noon, state)
	}
	if err != nil {
		t.Fatal(err)
	}
	return reading
}

// whileLocked starts work, which has to wait for rows that a transaction of the owner has locked,
// and commits that transaction once all of it waits. It returns the work's errors.
func (b bundle) whileLocked(t *testing.T, lock string, work ...func() error) []error {
	t.Helper()
	owner := b.database.Owner(t)
	locking, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locking.Exec(t.Context(), lock, b.workspace.ID); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(work))
	var working sync.WaitGroup
	for i, do := range work {
		working.Go(func() { errs[i] = do() })
	}
	for waiting := 0; waiting < len(work); {
		const waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		if err := locking.QueryRow(t.Context(), waits).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		// The view is the same for a whole transaction unless it is asked to look again.
		if _, err := locking.Exec(t.Context(), "SELECT pg_stat_clear_snapshot()"); err != nil {
			t.Fatal(err)
		}
	}
	if err := locking.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	working.Wait()
	return errs
}

// Two checkouts at once make two customers: the first one stays, and both use it.
func TestFirstCustomerOfAWorkspaceStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, customer := range []string{"cus_first", "cus_second"} {
		if kept, err := b.store.KeepCustomer(t.Context(), b.workspace.ID, customer); err != nil || kept != "cus_first" {
			t.Errorf("%s: kept %s, %v", customer, kept, err)
		}
	}
	if customer := b.account(t).Customer; customer != "cus_first" {
		t.Errorf("the customer is %s", customer)
	}
}

func TestEverythingThatIsKnownOfAnAccountIsReadBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := func(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }
	want := billing.Account{
		Workspace: b.workspace.ID, Customer: "cus_1", Told: "past_due", Restraint: tenants.Restraint{Reason: tenants.PaymentFailed, Since: at(8)},
		State: billing.State{
			Subscription: "sub_1", Plan: billing.Team, Status: billing.PastDue, Seats: 7, PeriodStart: at(1), PeriodEnd: at(2), TrialEnd: at(3),
			EndsAt: at(4), PastDueSince: at(5), MeteredFrom: at(6), MeteredTo: at(7),
		},
	}
	if _, err := b.store.KeepCustomer(t.Context(), b.workspace.ID, want.Customer); err != nil {
		t.Fatal(err)
	}
	b.keep(t, want.State)
	if err := b.store.Restrain(t.Context(), b.workspace.ID, want.Restraint); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Tell(t.Context(), b.workspace.ID, want.Told, func(tenants.Tenant, []string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := b.account(t); got != want {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
}

// Other replicas hold a workspace's traffic back, or let it go, as soon as they are notified.
func TestRestraintIsToldToOtherReplicas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	listening, err := pgx.Connect(t.Context(), b.database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listening.Close(context.WithoutCancel(t.Context())) })
	if _, err := listening.Exec(t.Context(), "LISTEN "+tenantsdb.SettingsChannel); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Restrain(t.Context(), b.workspace.ID, tenants.Restraint{Reason: tenants.QuotaUsed, Since: noon}); err != nil {
		t.Fatal(err)
	}
	b.sql(t, "SELECT pg_notify($1, 'nothing was told before')", tenantsdb.SettingsChannel)
	if told, err := listening.WaitForNotification(t.Context()); err != nil || told.Payload != b.workspace.ID.String() {
		t.Errorf("told %+v, %v", told, err)
	}
}

// A state that was read earlier, or under the same number, changes nothing that is kept. After a
// new one the workspace is due immediately.
func TestOnlyNewerReadingsAreKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.keep(t, billing.State{Plan: billing.Pro, Status: billing.Active})
	for _, again := range []int64{first, first - 1} {
		if err := b.store.KeepReading(t.Context(), b.workspace.ID, again, noon, billing.State{Plan: billing.Team, Status: billing.Active}); err != nil {
			t.Fatal(err)
		}
		if plan := b.account(t).Plan; plan != billing.Pro {
			t.Errorf("reading %d after %d: the plan is %s", again, first, plan)
		}
	}
	if err := b.store.LookAgain(t.Context(), b.workspace.ID, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.keep(t, billing.State{Plan: billing.Team, Status: billing.Active})
	if due, err := b.store.Due(t.Context(), noon, 10); err != nil || len(due) != 1 {
		t.Errorf("due after a change: %v, %v", due, err)
	}
}

// What a reading changed is noted against what was there when it was kept, not when it began.
func TestChangeOfPlanIsNotedAgainstWhatWasKeptLast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.keep(t, billing.State{Plan: billing.Free})
	reading, err := b.store.BeginReading(t.Context(), b.workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range b.whileLocked(t, "UPDATE billing_accounts SET plan = 'pro', status = 'active' WHERE workspace_id = $1", func() error {
		return b.store.KeepReading(t.Context(), b.workspace.ID, reading, noon, billing.State{Plan: billing.Pro, Status: billing.Active})
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	noted, err := b.database.DB.Audit.Audit(t.Context(), b.workspace.ID, tenants.AuditFilter{Limit: 10, Action: string(tenants.PlanChanged)})
	if err != nil || len(noted) != 0 {
		t.Errorf("noted %+v, %v", noted, err)
	}
}

// A notice is done once Stripe was read after it came: one that came meanwhile is not.
func TestNoticeThatComesWhileStripeIsReadIsHandledLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	notices := map[string]time.Time{"before": noon.Add(-time.Microsecond), "as it begins": noon, "meanwhile": noon.Add(time.Microsecond)}
	ids := map[string]uuid.UUID{}
	for name, at := range notices {
		ids[name] = uuid.New()
		notice := billing.Notice{ID: ids[name], Event: "evt_" + name, Type: "customer.subscription.updated", ReceivedAt: at}
		if err := b.store.KeepNotice(t.Context(), b.workspace.ID, notice, func(tenants.Tenant) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	b.keep(t, billing.State{Plan: billing.Pro, Status: billing.Active})
	for name, id := range ids {
		if done, err := b.store.IsDone(t.Context(), b.workspace.ID, id); err != nil || done != (name == "before") {
			t.Errorf("the notice that came %s: done %t, %v", name, done, err)
		}
	}
}
