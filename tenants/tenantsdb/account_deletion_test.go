package tenantsdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// rowsOf returns how many rows hold a person's id: their own, and those of workspaces.
func (b bundle) rowsOf(t *testing.T, user uuid.UUID) (own int) {
	t.Helper()
	for _, table := range []string{"users WHERE id", "members WHERE user_id", "logins WHERE user_id", "user_tokens WHERE user_id", "second_factors WHERE user_id", "passkeys WHERE user_id"} {
		var count int
		if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM "+table+" = $1", user).Scan(&count); err != nil {
			t.Fatal(err)
		}
		own += count
	}
	return own
}

// S31, S42
func TestDeletedAccountLeavesNoRowsAndNoKeys(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]bool{"revoked": true, "kept": false} {
		b := setup(t)
		grace := b.join(t, "grace@example.com", tenants.Regular)
		login := tenants.Login{ID: uuid.Must(uuid.NewV7()), UserID: grace.ID, Workspace: b.workspace, CreatedAt: now(), ExpiresAt: now().Add(time.Hour)}
		if err := b.Logins.CreateLogin(t.Context(), login); err != nil {
			t.Fatal(err)
		}
		hers, _ := b.addKey(t, b.workspace)
		others, _ := b.addKey(t, b.workspace)
		b.disown(t, hers.ID, grace.ID)

		// Her own workspace would have no owner: nothing changes.
		only := tenants.OnlyOwner{}
		if err := b.Accounts.DeleteAccount(as(t, grace), grace.ID, revoke); !errors.As(err, &only) || only.Workspace == "" || b.role(t, grace.ID) != tenants.Regular {
			t.Fatalf("%s: the only owner of a workspace: %v", name, err)
		}
		memberships, err := b.Workspaces.Memberships(t.Context(), grace.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range memberships {
			if one.Workspace.ID == b.workspace {
				continue
			}
			if err := b.Deletion.CloseWorkspace(as(t, grace), one.Workspace.ID, nothingElse); err != nil {
				t.Fatal(err)
			}
		}
		if b.rowsOf(t, grace.ID) == 0 {
			t.Fatalf("%s: she is gone with a workspace though she belongs to another", name)
		}
		if err := b.Accounts.DeleteAccount(as(t, grace), grace.ID, revoke); err != nil {
			t.Fatal(err)
		}
		if left := b.rowsOf(t, grace.ID); left != 0 {
			t.Errorf("%s: %d rows are left", name, left)
		}
		if _, err := b.Logins.ActiveLogin(t.Context(), grace.ID, login.ID); !errors.Is(err, tenants.ErrLoginEnded) {
			t.Errorf("%s: her login: %v", name, err)
		}
		keys, err := b.APIKeys.APIKeys(tenants.OwnWork(t.Context()), b.workspace)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if (key.RevokedAt != nil) != (revoke && key.ID == hers.ID) {
				t.Errorf("%s: key %s (hers: %v) revoked at %v", name, key.ID, key.ID != others.ID, key.RevokedAt)
			}
		}
		if noted := b.noted(t); noted.Action != tenants.MemberLeft || noted.Before["email"] != grace.Email {
			t.Errorf("%s: noted %+v", name, noted)
		}
	}
}

// The only operator's account going would make the next person who signs up the operator.
func TestAccountOfAnOperatorStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := tenantsdb.AppointOperator(t.Context(), b.database.OwnerURL, b.user.ID); err != nil {
		t.Fatal(err)
	}
	b.join(t, "grace@example.com", tenants.Owner) // so that the workspace has another owner
	if err := b.Accounts.DeleteAccount(as(t, b.user), b.user.ID, true); !errors.Is(err, tenants.ErrOperator) || b.role(t, b.user.ID) != tenants.Owner {
		t.Errorf("an operator: %v", err)
	}
	if err := b.Deletion.CloseWorkspace(t.Context(), b.workspace, nothingElse); err != nil {
		t.Fatal(err)
	}
	if b.rowsOf(t, b.user.ID) == 0 {
		t.Error("the operator is gone with the workspace")
	}
}

// S31, S42: with a workspace go the accounts of people who belong nowhere else.
func TestPeopleGoWithTheirLastWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	grace, hers := b.signUp(t, "grace@example.com")
	eve := b.join(t, "eve@example.com", tenants.Regular)
	_, err := b.database.Owner(t).Exec(t.Context(), "INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, 'member')", hers, eve.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Deletion.CloseWorkspace(t.Context(), hers, nothingElse); err != nil {
		t.Fatal(err)
	}
	if left := b.rowsOf(t, grace.ID); left != 0 {
		t.Errorf("%d rows are left of a person who belonged nowhere else", left)
	}
	if b.rowsOf(t, eve.ID) == 0 {
		t.Error("a person who belongs to another workspace is gone")
	}
}
