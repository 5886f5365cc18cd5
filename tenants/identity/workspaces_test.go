package identity_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

func TestLoginLandsInTheWorkspaceUsedLast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, token := b.signUp(t, "ada@example.com")
	second, err := b.service.Workspaces().CreateWorkspace(t.Context(), ada.Login, " Second ")
	if err != nil || second.Name != "Second" {
		t.Fatalf("%+v (%v)", second, err)
	}
	if who, err := b.service.Authenticate(t.Context(), token); err != nil || who.Workspace.ID != second.ID {
		t.Errorf("the login works in %+v (%v)", who.Workspace, err)
	}
	for _, workspace := range []tenants.WorkspaceID{ada.Workspace.ID, second.ID, ada.Workspace.ID} {
		if err := b.service.Workspaces().Enter(t.Context(), ada.Login, workspace); err != nil {
			t.Fatal(err)
		}
		who, _, err := b.service.LogIn(t.Context(), "ada@example.com", password, "here", "another browser")
		if err != nil || who.Workspace.ID != workspace || len(who.Memberships) != 2 {
			t.Errorf("logged in to %+v (%v), want %s", who.Workspace, err, workspace)
		}
	}
	var invalid tenants.Invalid
	if _, err := b.service.Workspaces().CreateWorkspace(t.Context(), ada.Login, " "); !errors.As(err, &invalid) || invalid.Field != "workspace" {
		t.Errorf("without a name: %v", err)
	}
	if err := b.service.Workspaces().RenameWorkspace(t.Context(), second.ID, ""); !errors.As(err, &invalid) {
		t.Errorf("renamed to nothing: %v", err)
	}
}

func TestWhoBelongsToNoWorkspaceCanLogInAndCreateOne(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	grace := b.let(t, "grace@example.com", tenants.Regular)
	if err := b.service.Workspaces().RemoveMember(b.ctx, b.owner.Workspace.ID, grace.User.ID, true); err != nil {
		t.Fatal(err)
	}
	who, token, err := b.service.LogIn(t.Context(), "grace@example.com", password, "here", "test")
	if err != nil || !who.Workspace.ID.IsZero() || who.Role != "" {
		t.Fatalf("%+v (%v)", who, err)
	}
	own, err := b.service.Workspaces().CreateWorkspace(t.Context(), who.Login, "Her own")
	if err != nil {
		t.Fatal(err)
	}
	if who, err = b.service.Authenticate(t.Context(), token); err != nil || who.Workspace.ID != own.ID || who.Role != tenants.Owner {
		t.Errorf("%+v (%v)", who, err)
	}
}

// Anyone who has changed, left or switched is someone else from the next request on.
// S36
func TestChangesOfMembersAreHeardOnEveryReplica(t *testing.T) {
	t.Parallel()
	b := setupInviting(t)
	_, secret := b.invite(t, "grace@example.com", tenants.Regular)
	grace, token, err := b.invitations.SignUp(t.Context(), secret, password, "Her own", "test")
	if err != nil {
		t.Fatal(err)
	}
	other, heard := b.peopleReplica(t)
	workspace := b.owner.Workspace.ID
	after := func(change func() error) (tenants.Principal, error) {
		t.Helper()
		if _, err := other.Authenticate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-heard:
		case <-time.After(patience):
			t.Fatal("the replica hears nothing")
		}
		return other.Authenticate(t.Context(), token)
	}

	who, err := after(func() error {
		return b.service.Workspaces().ChangeRole(b.ctx, workspace, grace.User.ID, tenants.Viewer)
	})
	if err != nil || who.Role != tenants.Viewer {
		t.Errorf("after the change of her role: %+v (%v)", who, err)
	}
	if who, err = after(func() error { return b.service.Workspaces().RenameWorkspace(b.ctx, workspace, "Southbeam") }); err != nil || who.Workspace.Name != "Southbeam" {
		t.Errorf("after the new name: %+v (%v)", who, err)
	}
	memberships, err := b.DB.Workspaces.Memberships(t.Context(), grace.User.ID)
	if err != nil || len(memberships) != 2 {
		t.Fatal(memberships, err)
	}
	own := memberships[1].Workspace.ID
	if own == workspace {
		own = memberships[0].Workspace.ID
	}
	if who, err = after(func() error { return b.service.Workspaces().Enter(t.Context(), grace.Login, own) }); err != nil || who.Workspace.ID != own {
		t.Errorf("after the switch: %+v (%v)", who, err)
	}
	if who, err = after(func() error { return b.service.Workspaces().Enter(t.Context(), grace.Login, workspace) }); err != nil || who.Workspace.ID != workspace {
		t.Errorf("after the way back: %+v (%v)", who, err)
	}
	if _, err = after(func() error { return b.service.Workspaces().RemoveMember(b.ctx, workspace, grace.User.ID, true) }); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("after her removal: %v", err)
	}
}

// peopleReplica returns the service of another replica; heard gets a value when it
// has been told of a change.
func (b *bundle) peopleReplica(t *testing.T) (people *identity.Service, heard <-chan struct{}) {
	t.Helper()
	people, err := identity.NewService(storeOf(b.DB), nil, [][]byte{b.signing}, b.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{}, 10)
	listener := b.DB.NewListener(slog.New(slog.DiscardHandler))
	listener.Handle(tenantsdb.LoginsChannel, func(string) { people.Forget(); told <- struct{}{} }, people.Forget)
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)
	return people, told
}
