package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// WorkspaceStore stores workspaces and their members. The methods of Workspaces with the same names document
// its return values.
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

// Workspaces creates and renames workspaces, and manages their members.
type Workspaces struct {
	store  WorkspaceStore
	most   int // that one person may own; 0 means no limit
	forget func()
}

// Workspaces returns the workspaces of the service's users.
func (s *Service) Workspaces() Workspaces {
	return Workspaces{store: s.store, most: s.signUps.Workspaces, forget: s.Forget}
}

// WorkspaceName returns the name of a workspace.
func (w Workspaces) WorkspaceName(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	return w.store.WorkspaceName(ctx, workspace)
}

// CreateWorkspace creates a workspace owned by a login's user, and switches the login to it. Bad input is a
// tenants.Invalid for workspace. It returns tenants.ErrSignOnOnly for a login limited to another workspace.
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

// Enter switches a login to another workspace of its user, from its next request on, everywhere. It returns
// tenants.ErrNotFound for a workspace without a membership, and tenants.ErrSignOnOnly for one outside the
// login's limit.
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

// RenameWorkspace renames a workspace. Bad input is a tenants.Invalid for workspace.
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

// Leave ends someone's own membership of their current workspace. Their API keys there are revoked or kept.
// It returns tenants.ErrLastOwner for the workspace's last owner.
func (w Workspaces) Leave(ctx context.Context, who tenants.Principal, revokeKeys bool) error {
	if err := w.store.LeaveWorkspace(ctx, who.User.ID, who.Workspace.ID, revokeKeys); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	w.forget()
	return nil
}

// Members returns the members of a workspace in the order of joining.
func (w Workspaces) Members(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Member, error) {
	members, err := w.store.Members(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("members: %w", err)
	}
	return members, nil
}

// ChangeRole gives a member another role, on behalf of the context's actor. It returns tenants.ErrNotFound
// for non-members, a tenants.Invalid for an invalid role, tenants.ErrDenied, and tenants.ErrLastOwner.
func (w Workspaces) ChangeRole(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, role tenants.Role) error {
	if err := w.store.ChangeRole(ctx, workspace, user, role); err != nil {
		return fmt.Errorf("change role: %w", err)
	}
	w.forget()
	return nil
}

// RemoveMember ends a membership and the logins in the workspace, on behalf of the context's actor. The
// member's API keys there are revoked or kept. It returns tenants.ErrNotFound for non-members,
// tenants.ErrDenied, and tenants.ErrLastOwner.
func (w Workspaces) RemoveMember(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, revokeKeys bool) error {
	if err := w.store.RemoveMember(ctx, workspace, user, revokeKeys); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	w.forget()
	return nil
}

// lastUsed returns the membership of the last used workspace, the first one if unknown, or the zero value
// without memberships.
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
