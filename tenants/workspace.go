package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Workspace is the tenant: members, keys, pipeline, archive and bill belong to one.
type Workspace struct {
	ID        WorkspaceID
	Name      string
	CreatedAt time.Time

	// Suspension is the reason why the workspace is blocked; nil if it is active. It is set for the
	// workspaces of a Principal only.
	Suspension *Suspension
}

// Role bounds a member's rights in a workspace.
type Role string

// The roles of members.
const (
	Owner   Role = "owner"
	Admin   Role = "admin"
	Regular Role = "member"
	Viewer  Role = "viewer"
	Billing Role = "billing"
)

// User is a person with a login.
type User struct {
	ID        uuid.UUID
	Email     string // lower case
	CreatedAt time.Time

	// VerifiedAt is when the person proved that they receive mails to the address; nil until then.
	VerifiedAt *time.Time

	// MustVerify says that the person signed up by mail, and can log in only after VerifiedAt is set. It is
	// set only where their password is checked.
	MustVerify bool

	// Operator says that the person runs the installation. It is set for a principal only.
	Operator bool
}

// Membership is a user's place in a workspace.
type Membership struct {
	Workspace Workspace
	Role      Role
	SeenAt    time.Time // when the user last worked there, within minutes; zero if unknown
}

// LoginAge is how long a login lasts.
const LoginAge = 14 * 24 * time.Hour

// Member is a user in one workspace.
type Member struct {
	User     User
	Role     Role
	JoinedAt time.Time
	SeenAt   time.Time // when they last did something here, within minutes; zero if never
}

// Login is one browser or script that a user is logged in with.
type Login struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	Workspace WorkspaceID // the login's workspace; zero if absent
	SignOn    WorkspaceID // workspace whose single sign-on opened it and to which it is limited; zero for other logins
	UserAgent string      // as the browser named itself
	Place     string      // place of the log-in; written once and not read back
	CreatedAt time.Time
	SeenAt    time.Time // last use, within minutes
	ExpiresAt time.Time
}

// Principal is the person behind a request to the dashboard or the product API: a user, in the workspace of
// their login. Without a workspace they have no role, and may only create or join one.
type Principal struct {
	User        User
	Login       Login
	Workspace   Workspace // zero if absent
	Role        Role
	Memberships []Membership // all workspaces of the user, in the order of joining
}

// Bound limits the principal to their login's access: a login through a workspace's single sign-on opens that
// workspace only, and gives no operator rights.
func (p Principal) Bound() Principal {
	only := p.Login.SignOn
	if only.IsZero() {
		return p
	}
	p.User.Operator = false
	var memberships []Membership
	for _, membership := range p.Memberships {
		if membership.Workspace.ID == only {
			memberships = append(memberships, membership)
		}
	}
	p.Memberships = memberships
	if p.Workspace.ID != only {
		p.Workspace, p.Role = Workspace{}, ""
	}
	return p
}

// MayChangeKey reports whether the principal may change and revoke an API key: all keys, or their own ones.
func (p Principal) MayChangeKey(key APIKey) bool {
	return p.Role.May(ManageKeys) || p.Role.May(CreateKeys) && key.CreatedBy == p.User.ID
}

// Actor returns the principal as an actor of the audit log, with their address.
func (p Principal) Actor(from string) Actor {
	return Actor{User: p.User.ID, Name: p.User.Email, From: from}
}

// Workspaces creates and renames workspaces, and switches people between them.
type Workspaces interface {
	// WorkspaceName returns the name of a workspace.
	WorkspaceName(ctx context.Context, workspace WorkspaceID) (string, error)

	// CreateWorkspace switches the login to the new workspace. Bad input is an Invalid.
	CreateWorkspace(ctx context.Context, login Login, name string) (Workspace, error)

	// Enter returns ErrNotFound for a workspace without a membership of the login's user.
	Enter(ctx context.Context, login Login, workspace WorkspaceID) error

	// RenameWorkspace returns an Invalid for bad input.
	RenameWorkspace(ctx context.Context, workspace WorkspaceID, name string) error

	// Leave returns ErrLastOwner for the workspace's last owner.
	Leave(ctx context.Context, who Principal, revokeKeys bool) error
}

// Deletion deletes workspaces.
type Deletion interface {
	// DeleteConfirmed deletes the current workspace of someone at an address, after they have typed its name
	// and their password. It returns an Invalid for name or password, a TooMany, or ErrNotFound if the
	// workspace is deleted already.
	DeleteConfirmed(ctx context.Context, who Principal, name, password, from string) error
}
