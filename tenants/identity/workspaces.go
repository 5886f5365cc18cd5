package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// WorkspaceStore keeps workspaces and who belongs to them. What its methods return
// is told by those of Workspaces with their names.
type WorkspaceStore interface {
	tenants.Members

	// Memberships returns a user's workspaces, oldest membership first.
	Memberships(ctx context.Context, user uuid.UUID) ([]tenants.Membership, error)
	WorkspaceName(ctx context.Context, workspace tenants.WorkspaceID) (string, error)
	CreateWorkspace(ctx context.Context, owner uuid.UUID, name string, most int) (tenants.Workspace, error)
	EnterWorkspace(ctx context.Context, user, login uuid.UUID, workspace tenants.WorkspaceID) error
	RenameWorkspace(ctx context.Context, workspace tenants.WorkspaceID, name string) error
	LeaveWorkspace(ctx context.Context, user uuid.UUID, workspace tenants.WorkspaceID, revokeKeys bool) error
}

// Workspaces makes and names workspaces, and keeps who belongs to them.
type Workspaces struct {
	store  WorkspaceStore
	most   int // that one person may own; 0 for any number
	forget func()
}

// Workspaces returns what keeps the workspaces of the people that the service knows.
func (s *Service) Workspaces() Workspaces {
	return Workspaces{store: s.store, most: s.signUps.Workspaces, forget: s.Forget}
}

// WorkspaceName returns what a workspace is called.
func (w Workspaces) WorkspaceName(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	return w.store.WorkspaceName(ctx, workspace)
}

// CreateWorkspace creates a workspace that a login's user owns, and has the login
// work in it. What a person can mend is a tenants.Invalid of the field workspace. It
// returns tenants.ErrSignOnOnly for a login that opens another workspace only.
func (w Workspaces) CreateWorkspace(ctx context.Context, login tenants.Login, name string) (tenants.Workspace, error) {
	if !login.SignOn.IsZero() {
		return tenants.Workspace{}, tenants.ErrSignOnOnly
	}
	name, err := checkWorkspace(name)
	if err != nil {
		return tenants.Workspace{}, err
	}
	created, err := w.store.CreateWorkspace(ctx, login.UserID, name, w.most)
	if err != nil {
		return tenants.Workspace{}, fmt.Errorf("create workspace: %w", err)
	}
	return created, w.Enter(ctx, login, created.ID)
}

// Enter has a login work in another workspace of its user, from its next request on,
// everywhere. It returns tenants.ErrNotFound for a workspace that the user does not
// belong to, and tenants.ErrSignOnOnly for one that the login does not open.
func (w Workspaces) Enter(ctx context.Context, login tenants.Login, workspace tenants.WorkspaceID) error {
	if !login.SignOn.IsZero() && login.SignOn != workspace {
		return tenants.ErrSignOnOnly
	}
	if err := w.store.EnterWorkspace(ctx, login.UserID, login.ID, workspace); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	w.forget()
	return nil
}

// RenameWorkspace gives a workspace another name. What a person can mend is a
// tenants.Invalid of the field workspace.
func (w Workspaces) RenameWorkspace(ctx context.Context, workspace tenants.WorkspaceID, name string) error {
	name, err := checkWorkspace(name)
	if err != nil {
		return err
	}
	if err := w.store.RenameWorkspace(ctx, workspace, name); err != nil {
		return fmt.Errorf("rename: %w", err)
	}
	w.forget()
	return nil
}

// Leave ends someone's own membership of the workspace that they work in. Their API
// keys there are revoked, or stay. It returns tenants.ErrLastOwner where no one else
// owns the workspace.
func (w Workspaces) Leave(ctx context.Context, who tenants.Principal, revokeKeys bool) error {
	if err := w.store.LeaveWorkspace(ctx, who.User.ID, who.Workspace.ID, revokeKeys); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	w.forget()
	return nil
}

// Members returns the people of a workspace, in the order in which they joined.
func (w Workspaces) Members(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Member, error) {
	members, err := w.store.Members(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("members: %w", err)
	}
	return members, nil
}

// ChangeRole gives a member another role, on behalf of the context's actor. It
// returns tenants.ErrNotFound for who is no member, a tenants.Invalid for no role,
// tenants.ErrDenied, and tenants.ErrLastOwner.
func (w Workspaces) ChangeRole(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, role tenants.Role) error {
	if err := w.store.ChangeRole(ctx, workspace, user, role); err != nil {
		return fmt.Errorf("change role: %w", err)
	}
	w.forget()
	return nil
}

// RemoveMember ends a membership and the logins that work in the workspace, on behalf
// of the context's actor. The member's API keys there are revoked, or stay. It
// returns tenants.ErrNotFound for who is no member, tenants.ErrDenied, and
// tenants.ErrLastOwner.
func (w Workspaces) RemoveMember(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, revokeKeys bool) error {
	if err := w.store.RemoveMember(ctx, workspace, user, revokeKeys); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	w.forget()
	return nil
}

// lastUsed returns the membership whose workspace someone used last; the one that
// is oldest if that is not known, and none if absent.
func lastUsed(memberships []tenants.Membership) tenants.Membership {
	var last tenants.Membership
	for i, membership := range memberships {
		if i == 0 || membership.SeenAt.After(last.SeenAt) {
			last = membership
		}
	}
	return last
}

// Interface guards.
var (
	_ tenants.Workspaces = Workspaces{}
	_ tenants.Members    = Workspaces{}
)
