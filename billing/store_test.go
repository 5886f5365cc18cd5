package billing_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"palimpsest/tenants"
)

// join adds a person with a role to the workspace.
func (b bundle) join(t *testing.T, email string, role tenants.Role) {
	t.Helper()
	user, _, err := b.database.DB.Accounts.SignUp(t.Context(), email, "hash", "Elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	const join = "UPDATE members SET workspace_id = $1, role = $2 WHERE user_id = $3"
	if _, err := b.database.Owner(t).Exec(t.Context(), join, b.workspace.ID, string(role), user.ID); err != nil {
		t.Fatal(err)
	}
}

// S28: trouble with a payment is told once to each person who can end it, to nobody
// else, and again once there is other trouble. What could not be told is told later.
func TestTroubleIsToldOnceToWhoCanPay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for email, role := range map[string]tenants.Role{
		"owner@example.com": tenants.Owner, "billing@example.com": tenants.Billing, "admin@example.com": tenants.Admin,
		"member@example.com": tenants.Regular, "viewer@example.com": tenants.Viewer,
	} {
		b.join(t, email, role)
	}
	var told [][]string
	tell := func(trouble string, outcome error) {
		t.Helper()
		err := b.store.Tell(t.Context(), b.workspace.ID, trouble, func(_ tenants.Tenant, to []string) error {
			told = append(told, to)
			return outcome
		})
		if !errors.Is(err, outcome) {
			t.Fatalf("told of %s: %v", trouble, err)
		}
	}
	broken := errors.New("mails cannot be queued")
	tell("past_due", broken)
	tell("past_due", nil)
	tell("past_due", nil)
	tell("unpaid", nil)
	want := []string{"ada@example.com", "billing@example.com", "owner@example.com"}
	if len(told) != 3 || !slices.Equal(told[0], want) || !slices.Equal(told[1], want) || !slices.Equal(told[2], want) {
		t.Errorf("told %v, want three times %v", told, want)
	}
}

func TestCustomerOfNobodyIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.store.WorkspaceOf(t.Context(), "cus_unknown"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	customer := b.buy(t, "pro")
	if found, err := b.store.WorkspaceOf(t.Context(), customer); err != nil || found != b.workspace.ID {
		t.Errorf("customer %s is of workspace %s (%v), want %s", customer, found, err, b.workspace.ID)
	}
}

// A workspace is due at its time and not before, once for each look, and no more than
// asked for at once.
func TestWorkspacesAreDueAtTheirTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b
	_, workspace, err := b.database.DB.Accounts.SignUp(t.Context(), "bob@example.com", "hash", "Southwind")
	if err != nil {
		t.Fatal(err)
	}
	other.workspace = workspace
	for _, one := range []bundle{b, other} {
		if err := one.store.LookAt(t.Context(), one.workspace.ID); err != nil {
			t.Fatal(err)
		}
		if err := one.store.LookAgain(t.Context(), one.workspace.ID, noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	due := func(now time.Time, limit int) []tenants.WorkspaceID {
		t.Helper()
		found, err := b.store.Due(t.Context(), now, limit)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if early := due(noon.Add(time.Hour-time.Microsecond), 10); len(early) != 0 {
		t.Errorf("due before their time: %v", early)
	}
	if all := due(noon.Add(time.Hour), 10); len(all) != 2 {
		t.Errorf("due at their time: %v", all)
	}
	if one := due(noon.Add(time.Hour), 1); len(one) != 1 {
		t.Errorf("%d are due where one is asked for", len(one))
	}

	b.use(t, 1, noon)
	if found := due(noon, 10); !slices.Equal(found, []tenants.WorkspaceID{b.workspace.ID}) {
		t.Errorf("due for what was used: %v", found)
	}
	if err := b.store.LookAt(t.Context(), b.workspace.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.store.LookAgain(t.Context(), b.workspace.ID, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if found := due(noon, 10); len(found) != 0 {
		t.Errorf("due for what was looked at: %v", found)
	}
}
