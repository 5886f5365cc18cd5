package tenantsdb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

// left returns every row, of any table, that holds a workspace's id in any column.
func left(t *testing.T, b bundle, workspace tenants.WorkspaceID) []string {
	t.Helper()
	var rows []string
	for table := range columns(t, b.database.Owner(t)) {
		if isOfPeople(table) {
			continue
		}
		var found string
		err := b.database.Owner(t).QueryRow(t.Context(), "SELECT coalesce(string_agg(r::text, E'\n'), '') FROM "+table+" r WHERE r::text LIKE $1", "%"+workspace.String()+"%").Scan(&found)
		if err != nil {
			t.Fatal(err)
		}
		if found != "" {
			rows = append(rows, table+": "+found)
		}
	}
	slices.Sort(rows)
	return rows
}

// isOfPeople reports whether a table is no workspace's: its rows hold no workspace's
// id, or one that the fixture alone has put there. What operators did stays.
func isOfPeople(table string) bool {
	return slices.Contains([]string{
		"users", "user_tokens", "mails", "account_requests", "operators", "operator_entries", "second_factors", "recovery_codes",
		"passkeys", "passkey_challenges", "subscription_ends", "master_proof",
	}, table)
}

// erase does what the job does, without the bucket.
func erase(t *testing.T, b bundle, workspace tenants.WorkspaceID) error {
	t.Helper()
	if err := b.Deletion.EraseSessions(t.Context(), workspace); err != nil {
		return err
	}
	err := b.InTenant(t.Context(), workspace, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM archive_objects WHERE workspace_id = ?", workspace).Error
	})
	if err != nil {
		return err
	}
	return b.Deletion.EraseWorkspace(t.Context(), workspace)
}

func nothingElse(tenants.Tenant) error { return nil }

// S31: of a deleted workspace no row is left in any table there is, and of another
// nothing is gone.
func TestDeletedWorkspaceLeavesNoRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fill(t, b)
	_, other := b.signUp(t, "eve@example.com")
	full := left(t, b, b.workspace)
	for table := range columns(t, b.database.Owner(t)) {
		if !isOfPeople(table) && !slices.ContainsFunc(full, func(row string) bool { return strings.HasPrefix(row, table+": ") }) {
			t.Errorf("%s holds nothing of the workspace: the test proves nothing about it", table)
		}
	}
	before := left(t, b, other)
	if err := b.Deletion.EraseWorkspace(t.Context(), b.workspace); err != nil {
		t.Fatal(err)
	}
	if err := b.Deletion.EraseSessions(t.Context(), b.workspace); err != nil {
		t.Fatal(err)
	}
	if open := left(t, b, b.workspace); len(open) != len(full) {
		t.Errorf("something of a workspace is erased that nobody deleted:\n%s", strings.Join(open, "\n"))
	}
	if err := b.Deletion.CloseWorkspace(t.Context(), b.workspace, nothingElse); err != nil {
		t.Fatal(err)
	}
	for range 2 { // S28: done twice, it comes to the same
		if err := erase(t, b, b.workspace); err != nil {
			t.Fatal(err)
		}
	}
	if rows := left(t, b, b.workspace); len(rows) > 0 {
		t.Errorf("left:\n%s", strings.Join(rows, "\n"))
	}
	if after := left(t, b, other); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("of the other workspace there is\n%v\nand was\n%v", after, before)
	}
	if closed, err := b.Deletion.ClosedWorkspaces(t.Context()); err != nil || len(closed) != 0 {
		t.Errorf("left to do: %v, %v", closed, err)
	}
}

// S31: at once, nobody reaches the workspace any more.
func TestAClosedWorkspaceIsOutOfReach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fill(t, b)
	if err := b.Deletion.CloseWorkspace(t.Context(), b.workspace, nothingElse); err != nil {
		t.Fatal(err)
	}
	keys, keysErr := b.APIKeys.APIKeys(tenants.OwnWork(t.Context()), b.workspace)
	providers, providersErr := b.ProviderKeys.ProviderKeys(t.Context(), b.workspace)
	memberships, err := b.Workspaces.Memberships(t.Context(), b.user.ID)
	if err := errors.Join(err, keysErr, providersErr); err != nil || len(keys)+len(providers)+len(memberships) != 0 {
		t.Errorf("%d keys, %d provider keys, %d memberships, %v", len(keys), len(providers), len(memberships), err)
	}
	if logins, err := b.Logins.Logins(t.Context(), b.user.ID); err != nil || len(logins) != 0 {
		t.Errorf("logins go on: %+v, %v", logins, err)
	}
	channels, err := b.Alerts.AlertChannels(t.Context(), b.workspace)
	alerted, alertedErr := b.Alerts.AlertedWorkspaces(t.Context())
	if err := errors.Join(err, alertedErr); err != nil || len(channels)+len(alerted) != 0 {
		t.Errorf("%d alert channels go on, of workspaces %v, %v", len(channels), alerted, err)
	}
	if reader, err := b.Data.Reader(t.Context(), b.workspace, b.user.ID); err != nil || !reader.None() {
		t.Errorf("someone may read: %+v, %v", reader, err)
	}
	if err := b.Deletion.CloseWorkspace(t.Context(), b.workspace, nothingElse); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
	if closed, err := b.Deletion.ClosedWorkspaces(t.Context()); err != nil || fmt.Sprint(closed) != fmt.Sprint([]tenants.WorkspaceID{b.workspace}) {
		t.Errorf("left to do: %v, %v", closed, err)
	}
}

func TestLoginsGoOnInAnotherWorkspaceOfTheirPerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	login := b.logIn(t, 1<<40)
	next, err := b.Workspaces.CreateWorkspace(t.Context(), b.user.ID, "the next", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Deletion.CloseWorkspace(t.Context(), b.workspace, nothingElse); err != nil {
		t.Fatal(err)
	}
	who, err := b.Logins.ActiveLogin(t.Context(), b.user.ID, login.ID)
	if err != nil || who.Workspace.ID != next.ID || who.Role != tenants.Owner {
		t.Errorf("logged in to %+v, %v", who, err)
	}
}

// S32: what does not come about does not close the workspace.
func TestAWorkspaceIsClosedWithItsJobOrNotAtAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addKey(t, b.workspace)
	failed := errors.New("no job")
	if err := b.Deletion.CloseWorkspace(t.Context(), b.workspace, func(tenants.Tenant) error { return failed }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if keys, err := b.APIKeys.APIKeys(tenants.OwnWork(t.Context()), b.workspace); err != nil || len(keys) != 1 {
		t.Errorf("%d keys are left, %v", len(keys), err)
	}
}
