package tenantsdb_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// as returns a context in which everything is done on a person's behalf.
func as(t *testing.T, user tenants.User) context.Context {
	t.Helper()
	return tenants.WithActor(t.Context(), tenants.Actor{User: user.ID, Name: user.Email, From: "192.0.2.1"})
}

// join makes someone new a member of the bundle's workspace.
func (b bundle) join(t *testing.T, email string, role tenants.Role) tenants.User {
	t.Helper()
	user, _ := b.signUp(t, email)
	_, err := b.database.Owner(t).Exec(t.Context(), "INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, $3)", b.workspace, user.ID, string(role))
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// role returns the role of a member of the bundle's workspace; empty for nobody.
func (b bundle) role(t *testing.T, user uuid.UUID) tenants.Role {
	t.Helper()
	members, err := b.Workspaces.Members(t.Context(), b.workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range members {
		if member.User.ID == user {
			return member.Role
		}
	}
	return ""
}

// noted returns the newest audit entry of the bundle's workspace.
func (b bundle) noted(t *testing.T) tenants.AuditEntry {
	t.Helper()
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	return entries[0]
}

// S32: a change of a role is noted with what it was and is, and by whom.
func TestChangedRoleIsNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	grace := b.join(t, "grace@example.com", tenants.Viewer)

	if err := b.Workspaces.ChangeRole(as(t, b.user), b.workspace, grace.ID, tenants.Admin); err != nil {
		t.Fatal(err)
	}
	if role := b.role(t, grace.ID); role != tenants.Admin {
		t.Errorf("the role is %s", role)
	}
	noted := b.noted(t)
	if noted.Action != tenants.MemberRoleChanged || noted.Target != grace.ID.String() || noted.Actor.User != b.user.ID ||
		!maps.Equal(noted.Before, tenants.Fields{"email": grace.Email, "role": "viewer"}) ||
		!maps.Equal(noted.After, tenants.Fields{"email": grace.Email, "role": "admin"}) {
		t.Errorf("noted %+v", noted)
	}
}

// The actor's role is the one of now: a request that was let in a moment ago, and
// one on behalf of nobody, change nothing.
func TestRulesLookAtTheActorsRoleOfNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin, grace := b.join(t, "admin@example.com", tenants.Admin), b.join(t, "grace@example.com", tenants.Viewer)
	stranger, _ := b.signUp(t, "eve@example.com")
	before := b.noted(t)

	for name, attempt := range map[string]struct {
		ctx  context.Context
		user uuid.UUID
		role tenants.Role
		want error
	}{
		"an admin makes an owner":    {as(t, admin), grace.ID, tenants.Owner, tenants.ErrDenied},
		"an admin raises themselves": {as(t, admin), admin.ID, tenants.Owner, tenants.ErrDenied},
		"an admin demotes an owner":  {as(t, admin), b.user.ID, tenants.Viewer, tenants.ErrDenied},
		"a viewer raises themselves": {as(t, grace), grace.ID, tenants.Admin, tenants.ErrDenied},
		"who is no member":           {as(t, stranger), grace.ID, tenants.Admin, tenants.ErrDenied},
		"nobody":                     {t.Context(), grace.ID, tenants.Admin, tenants.ErrDenied},
		"a key makes an owner":       {tenants.WithActor(t.Context(), tenants.Actor{APIKey: uuid.New()}), grace.ID, tenants.Owner, tenants.ErrDenied},
		"the last owner steps down":  {as(t, b.user), b.user.ID, tenants.Admin, tenants.ErrLastOwner},
		"of who is no member":        {as(t, b.user), stranger.ID, tenants.Admin, tenants.ErrNotFound},
	} {
		if err := b.Workspaces.ChangeRole(attempt.ctx, b.workspace, attempt.user, attempt.role); !errors.Is(err, attempt.want) {
			t.Errorf("%s: %v, want %v", name, err, attempt.want)
		}
	}
	for name, err := range map[string]error{
		"an admin removes an owner": b.Workspaces.RemoveMember(as(t, admin), b.workspace, b.user.ID, true),
		"a viewer removes an admin": b.Workspaces.RemoveMember(as(t, grace), b.workspace, admin.ID, true),
	} {
		if !errors.Is(err, tenants.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Workspaces.LeaveWorkspace(as(t, b.user), b.user.ID, b.workspace, true); !errors.Is(err, tenants.ErrLastOwner) {
		t.Errorf("the last owner leaves: %v", err)
	}
	if after := b.noted(t); after.ID != before.ID {
		t.Errorf("noted %+v", after)
	}
}

func TestOneOwnerStaysWhenTwoLeaveAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second := b.join(t, "second@example.com", tenants.Owner)

	var group sync.WaitGroup
	failures := make(chan error, 2)
	for _, owner := range []tenants.User{b.user, second} {
		ctx := as(t, owner)
		group.Go(func() { failures <- b.Workspaces.LeaveWorkspace(ctx, owner.ID, b.workspace, true) })
	}
	group.Wait()
	if first, other := <-failures, <-failures; (first == nil) == (other == nil) || !errors.Is(errors.Join(first, other), tenants.ErrLastOwner) {
		t.Errorf("%v and %v", first, other)
	}
}

func TestRemovedMemberHasNoLoginAndNoKeysThere(t *testing.T) {
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

		if err := b.Workspaces.RemoveMember(as(t, b.user), b.workspace, grace.ID, revoke); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Logins.ActiveLogin(t.Context(), grace.ID, login.ID); !errors.Is(err, tenants.ErrLoginEnded) {
			t.Errorf("%s: her login: %v", name, err)
		}
		if b.role(t, grace.ID) != "" {
			t.Errorf("%s: she is a member still", name)
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
		if noted := b.noted(t); noted.Action != tenants.MemberRemoved || noted.Before["email"] != grace.Email || noted.After != nil {
			t.Errorf("%s: noted %+v", name, noted)
		}
	}
}

func TestWhoLeavesGoesOnInTheWorkspaceUsedLast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.join(t, "second@example.com", tenants.Owner)
	older, err := b.Workspaces.CreateWorkspace(as(t, b.user), b.user.ID, "older", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Workspaces.CreateWorkspace(as(t, b.user), b.user.ID, "never used", 0); err != nil {
		t.Fatal(err)
	}
	login := b.logIn(t, time.Hour)
	for _, workspace := range []tenants.WorkspaceID{older.ID, b.workspace} {
		if err := b.Workspaces.EnterWorkspace(t.Context(), b.user.ID, login.ID, workspace); err != nil {
			t.Fatal(err)
		}
	}
	hers, err := b.Logins.ActiveLogin(t.Context(), b.user.ID, login.ID)
	if err != nil || hers.Workspace.ID != b.workspace || len(hers.Memberships) != 3 {
		t.Fatalf("%+v (%v)", hers, err)
	}

	if err := b.Workspaces.LeaveWorkspace(as(t, b.user), b.user.ID, b.workspace, true); err != nil {
		t.Fatal(err)
	}
	hers, err = b.Logins.ActiveLogin(t.Context(), b.user.ID, login.ID)
	if err != nil || hers.Workspace.ID != older.ID || hers.Role != tenants.Owner || len(hers.Memberships) != 2 {
		t.Errorf("she goes on as %+v (%v)", hers, err)
	}
	if noted := b.noted(t); noted.Action != tenants.MemberLeft || noted.Target != b.user.ID.String() {
		t.Errorf("noted %+v", noted)
	}
}

func TestLoginMayWorkInNoWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	second := b.join(t, "second@example.com", tenants.Owner)
	login := b.logIn(t, time.Hour)
	if err := b.Workspaces.LeaveWorkspace(as(t, b.user), b.user.ID, b.workspace, true); err != nil {
		t.Fatal(err)
	}
	nowhere := tenants.Login{ID: uuid.Must(uuid.NewV7()), UserID: b.user.ID, CreatedAt: now(), ExpiresAt: now().Add(time.Hour)}
	if err := b.Logins.CreateLogin(t.Context(), nowhere); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uuid.UUID{login.ID, nowhere.ID} {
		principal, err := b.Logins.ActiveLogin(t.Context(), b.user.ID, id)
		if err != nil || principal.User.ID != b.user.ID || !principal.Workspace.ID.IsZero() || principal.Role != "" || len(principal.Memberships) != 0 {
			t.Errorf("principal %+v (%v)", principal, err)
		}
	}
	if err := b.Logins.RevokeLogin(t.Context(), b.user.ID, nowhere.ID); err != nil {
		t.Errorf("ending it: %v", err)
	}
	logins, err := b.Logins.Logins(t.Context(), b.user.ID)
	if err != nil || !slices.ContainsFunc(logins, func(l tenants.Login) bool { return l.ID == login.ID && l.Workspace.IsZero() }) {
		t.Errorf("logins %+v (%v)", logins, err)
	}
	for name, foreign := range map[string]tenants.WorkspaceID{"left": b.workspace, "unknown": tenants.NewWorkspaceID()} {
		if err := b.Workspaces.EnterWorkspace(t.Context(), b.user.ID, login.ID, foreign); !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("entering one that is %s: %v", name, err)
		}
	}
	if err := b.Workspaces.EnterWorkspace(t.Context(), second.ID, login.ID, b.workspace); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("with someone else's login: %v", err)
	}
}

// S32
func TestRenamedWorkspaceIsNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 { // the second time changes nothing
		if err := b.Workspaces.RenameWorkspace(as(t, b.user), b.workspace, "Northbeam"); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 2})
	if err != nil || entries[0].Action != tenants.WorkspaceRenamed || entries[1].Action == tenants.WorkspaceRenamed ||
		!maps.Equal(entries[0].Before, tenants.Fields{"name": "workspace of ada@example.com"}) || entries[0].After["name"] != "Northbeam" {
		t.Errorf("noted %+v (%v)", entries, err)
	}
	if err := b.Workspaces.RenameWorkspace(as(t, b.user), tenants.NewWorkspaceID(), "x"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
}

// A person who may manage fewer roles than before has no open invitations to the other roles. Those by other people stay.
func TestInvitationsGoWithTheRightToMakeThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin, other := b.join(t, "admin@example.com", tenants.Admin), b.join(t, "other@example.com", tenants.Admin)
	for i, by := range []tenants.User{admin, other, b.user} {
		for _, role := range []tenants.Role{tenants.Viewer, tenants.Regular} {
			email := string(role) + "." + by.Email
			if err := b.Invitations.CreateInvitations(as(t, by), b.workspace, wantedInvitation(email, role, email)); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
	}
	invited := func() (emails []string) {
		pending, err := b.Invitations.Invitations(t.Context(), b.workspace)
		if err != nil {
			t.Fatal(err)
		}
		for _, invitation := range pending {
			emails = append(emails, invitation.Email)
		}
		slices.Sort(emails)
		return emails
	}
	left := invited()
	for _, end := range []struct {
		whose tenants.User
		done  func() error
	}{
		{admin, func() error { return b.Workspaces.ChangeRole(as(t, b.user), b.workspace, admin.ID, tenants.Viewer) }},
		{other, func() error { return b.Workspaces.RemoveMember(as(t, b.user), b.workspace, other.ID, true) }},
	} {
		if err := end.done(); err != nil {
			t.Fatal(err)
		}
		left = slices.DeleteFunc(left, func(email string) bool { return strings.HasSuffix(email, "."+end.whose.Email) })
		if got := invited(); len(left) == 0 || !slices.Equal(got, left) {
			t.Errorf("without %s invitations to %v wait, want %v", end.whose.Email, got, left)
		}
	}
}
