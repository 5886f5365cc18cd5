package tenants

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Roles returns all roles, the one with the most rights first.
func Roles() []Role { return []Role{Owner, Admin, Regular, Viewer, Billing} }

// InvitationAge is how long an invitation is valid.
const InvitationAge = 7 * 24 * time.Hour

// Manages reports whether someone with a role may invite people to another role, and change and remove its
// members. Owners manage all roles; admins manage all except owners.
func (r Role) Manages(other Role) bool {
	return r.May(ManageMembers) && slices.Contains(Roles(), other) && (r == Owner || other != Owner)
}

// CheckRole returns an Invalid if role is not a role.
func CheckRole(role Role) error {
	if !slices.Contains(Roles(), role) {
		return Invalid{Field: "role", Message: "must be one of owner, admin, member, viewer, billing"}
	}
	return nil
}

// CheckRoleChange returns why someone with a role may not give another member a new role: an Invalid,
// ErrDenied, or ErrLastOwner if the workspace would have no owner left. owners is the current number.
func CheckRoleChange(by, from, to Role, owners int) error {
	if err := CheckRole(to); err != nil {
		return err
	}
	if !by.Manages(from) || !by.Manages(to) {
		return ErrDenied
	}
	if from == Owner && to != Owner && owners <= 1 {
		return ErrLastOwner
	}
	return nil
}

// CheckRemoval returns why someone with a role may not remove a member: ErrDenied,
// or ErrLastOwner.
func CheckRemoval(by, from Role, owners int) error {
	if !by.Manages(from) {
		return ErrDenied
	}
	return CheckLeaving(from, owners)
}

// CheckLeaving returns ErrLastOwner if a member with a role may not leave a workspace with this number of
// owners.
func CheckLeaving(role Role, owners int) error {
	if role == Owner && owners <= 1 {
		return ErrLastOwner
	}
	return nil
}

// OnlyOwner is ErrLastOwner with the workspace's name.
type OnlyOwner struct{ Workspace string }

// Error implements error.
func (e OnlyOwner) Error() string { return fmt.Sprintf("%s: %s", e.Workspace, ErrLastOwner) }

// Unwrap returns ErrLastOwner.
func (OnlyOwner) Unwrap() error { return ErrLastOwner }

// Invitation invites the person with an address to a workspace. Anyone who has its link and is logged in with
// the address may accept it, once.
type Invitation struct {
	ID        uuid.UUID
	Workspace Workspace
	Email     string // lower case
	Role      Role
	InvitedBy string // address of the inviter; "" for an API key, or a former member
	CreatedAt time.Time
	SentAt    time.Time // when its newest link was made
	ExpiresAt time.Time
}

// Fields returns the invitation's fields for the audit log.
func (i Invitation) Fields() Fields {
	return Fields{"email": i.Email, "role": string(i.Role), "expires": i.ExpiresAt.UTC().Format(time.RFC3339)}
}

// InvitationMail returns the mail with the link of an invitation that is about to be stored, or the reason
// not to send it.
type InvitationMail func(Invitation) (Mail, error)

// NewInvitation is an invitation to store.
type NewInvitation struct {
	Invitation

	Hash []byte // of its link's secret
	Mail InvitationMail
}

// Invited is an invitation with its link, which cannot be read again.
type Invited struct {
	Invitation

	Link string
}

// Members manages the members of a workspace.
type Members interface {
	// Members returns the members in the order of joining.
	Members(ctx context.Context, workspace WorkspaceID) ([]Member, error)

	// ChangeRole and RemoveMember work on behalf of the context's actor. They return
	// ErrNotFound, ErrDenied and ErrLastOwner.
	ChangeRole(ctx context.Context, workspace WorkspaceID, user uuid.UUID, role Role) error
	RemoveMember(ctx context.Context, workspace WorkspaceID, user uuid.UUID, revokeKeys bool) error
}

// Invitations invites people to workspaces, and adds them as members.
type Invitations interface {
	// Invite invites all or fails. Bad input is an Invalid.
	Invite(ctx context.Context, workspace WorkspaceID, emails []string, role Role) ([]Invited, error)

	// Pending returns the open invitations, including expired ones, the newest first.
	Pending(ctx context.Context, workspace WorkspaceID) ([]Invitation, error)

	// Resend and Revoke return ErrNotFound and ErrDenied; Resend also a TooMany.
	Resend(ctx context.Context, workspace WorkspaceID, id uuid.UUID) (Invited, error)
	Revoke(ctx context.Context, workspace WorkspaceID, id uuid.UUID) error

	// Find returns ErrInvitation for an invalid secret.
	Find(ctx context.Context, secret string) (Invitation, error)

	// Accept returns ErrInvitation and ErrOtherAddress.
	Accept(ctx context.Context, secret string, who Principal) error

	// SignUp returns the token of a new login. Bad input is an Invalid or ErrEmailTaken; ErrMailSent means
	// that the address must be verified first.
	SignUp(ctx context.Context, secret, password, workspace, userAgent string) (Principal, string, error)
}
