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

	// Suspension says why nobody may work there; nil if it is active. It is known of the
	// workspaces of a Principal only.
	Suspension *Suspension
}

// Role says what a member may do in a workspace.
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

	// VerifiedAt is when the person proved that mails to the address reach them; nil:
	// not yet.
	VerifiedAt *time.Time

	// MustVerify says that the person signed up where sign-ups are answered by mail, and
	// logs in once VerifiedAt is set. It is known where their password is checked only.
	MustVerify bool

	// Operator says that the person runs the installation. It is known of a principal
	// only.
	Operator bool
}

// Membership is a user's place in a workspace.
type Membership struct {
	Workspace Workspace
	Role      Role
	SeenAt    time.Time // when the user last worked there, to some minutes; zero: not known
}

// LoginAge is how long a login lasts.
const LoginAge = 14 * 24 * time.Hour

// Member is a user in one workspace.
type Member struct {
	User     User
	Role     Role
	JoinedAt time.Time
	SeenAt   time.Time // when they last did something here, to some minutes; zero: not yet
}

// Login is one browser or script that a user is logged in with.
type Login struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	Workspace WorkspaceID // the workspace the login works in; zero if none
	SignOn    WorkspaceID // whose single sign-on opened it: the only workspace it opens; zero if the person logged in here
	UserAgent string      // as the browser named itself
	Place     string      // where it was opened; set when it is, and not read again
	CreatedAt time.Time
	SeenAt    time.Time // when it was last used, to some minutes
	ExpiresAt time.Time
}

// Principal is who is behind a request to the dashboard or the product API: a
// user, in the workspace of their login. Someone who belongs to no workspace has
// no role, and may do nothing but get into one.
type Principal struct {
	User        User
	Login       Login
	Workspace   Workspace // zero: none
	Role        Role
	Memberships []Membership // all workspaces that the user belongs to, in the order in which they joined
}

// Bound returns the principal without what their login does not open: one that came through
// a workspace's single sign-on opens nothing else, and makes nobody an operator.
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

// MayChangeKey reports whether the principal may change and revoke an API key:
// everybody's, or those that they have created.
func (p Principal) MayChangeKey(key APIKey) bool {
	return p.Role.May(ManageKeys) || p.Role.May(CreateKeys) && key.CreatedBy == p.User.ID
}

// Actor returns the principal as the audit log names them, with the address that
// they work from.
func (p Principal) Actor(from string) Actor {
	return Actor{User: p.User.ID, Name: p.User.Email, From: from}
}

// Workspaces makes and names workspaces, and moves people between them.
type Workspaces interface {
	// WorkspaceName returns what a workspace is called.
	WorkspaceName(ctx context.Context, workspace WorkspaceID) (string, error)

	// CreateWorkspace has the login work in the new workspace. What a person can mend
	// is an Invalid.
	CreateWorkspace(ctx context.Context, login Login, name string) (Workspace, error)

	// Enter returns ErrNotFound for a workspace that the login's user does not belong to.
	Enter(ctx context.Context, login Login, workspace WorkspaceID) error

	// RenameWorkspace returns an Invalid for what a person can mend.
	RenameWorkspace(ctx context.Context, workspace WorkspaceID, name string) error

	// Leave returns ErrLastOwner where no one else owns the workspace.
	Leave(ctx context.Context, who Principal, revokeKeys bool) error
}

// Deletion deletes workspaces.
type Deletion interface {
	// DeleteConfirmed deletes the workspace in which someone at an address works, once
	// they have typed its name and their password. It returns an Invalid of name or
	// password, a TooMany, or ErrNotFound for a workspace that is deleted already.
	DeleteConfirmed(ctx context.Context, who Principal, name, password, from string) error
}
