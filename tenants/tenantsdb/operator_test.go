package tenantsdb_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// isOperator reports whether a person who logs in is one.
func (b bundle) isOperator(t *testing.T, user tenants.User, workspace tenants.WorkspaceID) bool {
	t.Helper()
	return b.principalOf(t, user, workspace).User.Operator
}

// principalOf logs someone in and returns who they are then.
func (b bundle) principalOf(t *testing.T, user tenants.User, workspace tenants.WorkspaceID) tenants.Principal {
	t.Helper()
	login := tenants.Login{ID: uuid.Must(uuid.NewV7()), UserID: user.ID, Workspace: workspace, CreatedAt: now(), ExpiresAt: now().Add(time.Hour)}
	if err := b.Logins.CreateLogin(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	principal, err := b.Logins.ActiveLogin(t.Context(), user.ID, login.ID)
	if err != nil {
		t.Fatal(err)
	}
	return principal
}

func TestFirstPersonOfAnInstallationIsItsOperator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second, other := b.signUp(t, "grace@example.com")

	if !b.isOperator(t, b.user, b.workspace) || b.isOperator(t, second, other) {
		t.Fatal("the first person alone is to be an operator")
	}
	for i, want := range []bool{true, false} {
		if appointed, err := tenantsdb.AppointOperator(t.Context(), b.database.OwnerURL, second.ID); appointed != want || err != nil {
			t.Errorf("appointed the %d. time: %v, %v", i+1, appointed, err)
		}
	}
	if !b.isOperator(t, second, other) {
		t.Error("who was appointed is no operator")
	}
	log, err := b.Operators.OperatorLog(t.Context(), second.ID, 10)
	if err != nil || len(log) != 2 || log[0].Action != tenants.OperatorAppointed || log[0].Name != second.Email || log[1].Action != tenants.OperatorFirst {
		t.Errorf("log %+v, %v", log, err)
	}
}

// Of many who are the first at once, one is.
func TestOneOfManyFirstPeopleIsTheOperator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := b.database.Owner(t)
	for _, statement := range []string{"DELETE FROM workspaces", "DELETE FROM users"} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			if _, _, err := b.Accounts.SignUp(t.Context(), fmt.Sprintf("p%d@example.com", i), "h", "w"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()

	if _, _, err := b.Accounts.SignUpFirst(t.Context(), "late@example.com", "h", "w"); !errors.Is(err, tenants.ErrNotFirst) {
		t.Errorf("who may be the first alone signs up later: %v", err)
	}

	var operators int
	if err := owner.QueryRow(t.Context(), "SELECT count(*) FROM operators").Scan(&operators); err != nil || operators != 1 {
		t.Errorf("%d operators (%v)", operators, err)
	}
}

func TestOperatorSeesFiguresOfEveryWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fill(t, b)
	failed := b.exchange(now())
	failed.Answer.Status = 529
	b.record(t, b.workspace, failed)
	b.fold(t)
	_, other := b.signUp(t, "grace@example.com")
	if err := b.Operators.ResumeWorkspace(t.Context(), b.user.ID, b.workspace, "a test's leftover"); err != nil {
		t.Fatal(err)
	}

	all, err := b.Operators.OperatedWorkspaces(t.Context(), b.user.ID, tenants.OperatedQuery{Limit: 10})
	if err != nil || len(all) != 2 || all[0].ID != other || all[1].ID != b.workspace {
		t.Fatalf("workspaces %+v, %v", all, err)
	}
	ours := all[1]
	if ours.Owner != b.user.Email || ours.Members != 1 || ours.Exchanges != 3 || ours.Failures != 1 || ours.ArchiveBytes != 1 || ours.LastExchange == nil || ours.Suspension != nil {
		t.Errorf("figures %+v", ours)
	}
	if all[0].Exchanges != 0 || all[0].LastExchange != nil {
		t.Errorf("figures of a new workspace %+v", all[0])
	}

	first, err := b.Operators.OperatedWorkspaces(t.Context(), b.user.ID, tenants.OperatedQuery{Limit: 1})
	if err != nil || len(first) != 1 {
		t.Fatalf("%d workspaces, %v", len(first), err)
	}
	next, err := b.Operators.OperatedWorkspaces(t.Context(), b.user.ID, tenants.OperatedQuery{Limit: 1, BeforeAt: first[0].CreatedAt, BeforeID: first[0].ID})
	if err != nil || len(next) != 1 || next[0].ID != b.workspace {
		t.Errorf("the second page holds %+v, %v", next, err)
	}
	for search, want := range map[string]tenants.WorkspaceID{"of GRACE": other, "grace@": other, b.workspace.String(): b.workspace} {
		found, err := b.Operators.OperatedWorkspaces(t.Context(), b.user.ID, tenants.OperatedQuery{Search: search, Limit: 10})
		if err != nil || len(found) != 1 || found[0].ID != want {
			t.Errorf("searched for %s: %+v, %v", search, found, err)
		}
	}
	if found, err := b.Operators.OperatedWorkspaces(t.Context(), b.user.ID, tenants.OperatedQuery{Search: "%", Limit: 10}); err != nil || len(found) != 0 {
		t.Errorf("%% is searched for as it is: %+v, %v", found, err)
	}
}

// The page of the operator reads sums, however many exchanges a workspace has, and the one
// exchange that is its newest.
func TestOperatorsFiguresAreReadFromSums(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	b := setup(t)
	owner := b.database.Owner(t)
	dbtest.FillExchanges(t, owner, b.workspace, 20_000)
	old := b.exchange(now().Add(-40 * 24 * time.Hour))
	own := b.exchange(now())
	own.Request.Class, own.Tokens.Output = "summary", 1_000_000
	b.record(t, b.workspace, old, own)
	b.fold(t)

	tx, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	var exchanges, failures, tokens, read int64
	var last time.Time
	for _, step := range []struct {
		statement string
		arguments []any
		into      []any
	}{
		{"SELECT set_config('app.user_id', $1, true) <> ''", []any{b.user.ID.String()}, []any{new(bool)}},
		{"SELECT exchange_count, failure_count, token_count, last_exchange FROM operator_workspaces('', NULL::timestamptz, NULL::uuid, $1, 1)", []any{b.workspace}, []any{&exchanges, &failures, &tokens, &last}},
		{"SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'exchanges'", nil, []any{&read}},
	} {
		if err := tx.QueryRow(t.Context(), step.statement, step.arguments...).Scan(step.into...); err != nil {
			t.Fatalf("%s: %v", step.statement, err)
		}
	}
	// Of fifty exchanges one is refused by the provider, of five hundred one by the proxy.
	if exchanges != 20_000 || failures != 440 || tokens != 20_000*(900+58_000+1_100+700)+int64(own.Tokens.Input+own.Tokens.CacheRead+own.Tokens.CacheWrite+own.Tokens.Output) {
		t.Errorf("%d exchanges, %d failures, %d tokens", exchanges, failures, tokens)
	}
	if read > 1 || last.Before(own.At.Truncate(time.Second)) {
		t.Errorf("%d exchanges read; the newest was at %s", read, last)
	}
}

func TestNobodyElseOperates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	eve, other := b.signUp(t, "eve@example.com")

	_, listed := b.Operators.OperatedWorkspaces(t.Context(), eve.ID, tenants.OperatedQuery{Limit: 10})
	_, one := b.Operators.OperatedWorkspace(t.Context(), eve.ID, other)
	_, log := b.Operators.OperatorLog(t.Context(), eve.ID, 10)
	for what, err := range map[string]error{
		"list": listed, "one": one, "log": log, "suspend": b.Operators.SuspendWorkspace(t.Context(), eve.ID, b.workspace, "mine"),
		"resume": b.Operators.ResumeWorkspace(t.Context(), eve.ID, other, "mine"),
	} {
		if !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", what, err)
		}
	}
	if b.principalOf(t, b.user, b.workspace).Workspace.Suspension != nil {
		t.Error("the workspace was suspended")
	}
}

// S32: what the operator does to a workspace stands in its own audit log, too.
func TestSuspensionIsKnownToldAndNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, hash := b.addKey(t, b.workspace)
	_, other := b.signUp(t, "grace@example.com")
	_, h := listen(t, b)

	for range 2 { // the second time changes nothing
		if err := b.Operators.SuspendWorkspace(t.Context(), b.user.ID, b.workspace, "unpaid \x00bills"); err != nil {
			t.Fatal(err)
		}
	}
	for _, channel := range []string{tenantsdb.KeysChannel, tenantsdb.LoginsChannel} {
		if got := h.next(t); got != channel+" "+b.workspace.String() {
			t.Errorf("heard %s", got)
		}
	}
	found, err := b.APIKeys.APIKeyByHash(t.Context(), hash)
	if err != nil || found.ID != key.ID || !found.Suspended || !found.Unverified {
		t.Errorf("key %+v, %v", found, err)
	}
	if suspended := b.principalOf(t, b.user, b.workspace).Workspace.Suspension; suspended == nil || suspended.Reason != "unpaid bills" {
		t.Errorf("members read %+v", suspended)
	}
	memberships, err := b.Workspaces.Memberships(t.Context(), b.user.ID)
	if err != nil || len(memberships) != 1 || memberships[0].Workspace.Suspension == nil || memberships[0].Workspace.Suspension.Reason != "unpaid bills" {
		t.Errorf("from elsewhere members read %+v, %v", memberships, err)
	}
	if one, err := b.Operators.OperatedWorkspace(t.Context(), b.user.ID, b.workspace); err != nil || one.Suspension == nil {
		t.Errorf("the operator sees %+v, %v", one, err)
	}
	if one, err := b.Operators.OperatedWorkspace(t.Context(), b.user.ID, other); err != nil || one.Suspension != nil {
		t.Errorf("another workspace is suspended: %+v, %v", one, err)
	}

	if err := b.Operators.ResumeWorkspace(t.Context(), b.user.ID, b.workspace, "paid"); err != nil {
		t.Fatal(err)
	}
	if err := b.Accounts.VerifyUser(t.Context(), b.user.ID); err != nil {
		t.Fatal(err)
	}
	if found, err := b.APIKeys.APIKeyByHash(t.Context(), hash); err != nil || found.Suspended || found.Unverified {
		t.Errorf("key of a resumed workspace with a verified owner %+v, %v", found, err)
	}

	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	entries = slices.DeleteFunc(entries, func(e tenants.AuditEntry) bool {
		return e.Action != tenants.WorkspaceSuspended && e.Action != tenants.WorkspaceResumed
	})
	if len(entries) != 2 || entries[1].Actor.Name != "operator" || entries[1].Actor.User != uuid.Nil || entries[1].After["reason"] != "unpaid bills" || entries[0].After["state"] != "active" {
		t.Errorf("audit %+v", entries)
	}
	log, err := b.Operators.OperatorLog(t.Context(), b.user.ID, 2)
	if err != nil || len(log) != 2 || log[0].Action != tenants.WorkspaceResumed || log[1].Actor != b.user.Email || log[1].Reason != "unpaid bills" {
		t.Errorf("log %+v, %v", log, err)
	}
	if err := b.Operators.SuspendWorkspace(t.Context(), b.user.ID, tenants.NewWorkspaceID(), "x"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("nobody's workspace: %v", err)
	}
}
