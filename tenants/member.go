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
	Workspace Workspace `gorm:"embedded;embeddedPrefix:workspace_"`
	Email     string    // lower case
	Role      Role
	InvitedBy string `gorm:"column:inviter"` // address of the inviter; "" for an API key, or a former member
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

// Permission is the right to an action in a workspace. Every route requires one; roles and the scopes of API
// keys grant them.
type Permission string

// The permissions.
const (
	// Enter allows entering the workspace. Every member has it.
	Enter Permission = "enter"
	// ReadMetrics allows reading figures: usage, money, requests without their text.
	ReadMetrics Permission = "metrics.read"
	// ReadSpend allows reading every member's spend. Without it, members see their own only.
	ReadSpend Permission = "spend.read"
	// ReadConfig allows reading keys, providers, pipeline and patterns, without secrets.
	ReadConfig Permission = "config.read"
	// ReadSessions allows reading sessions, and their text within the workspace's TextPolicy.
	ReadSessions Permission = "sessions.read"
	// ReadArchive allows searching and reading session text within the workspace's TextPolicy.
	ReadArchive Permission = "archive.read"
	// StarSessions allows starring sessions for oneself.
	StarSessions Permission = "sessions.star"
	// CommentSessions allows commenting on readable sessions, and deleting one's own comments.
	CommentSessions Permission = "sessions.comment"
	// ManageComments allows deleting all comments.
	ManageComments Permission = "comments.manage"
	// ChangeSessions allows compacting sessions and pinning their turns.
	ChangeSessions Permission = "sessions.change"
	// DeleteSessions allows deleting sessions with their archive.
	DeleteSessions Permission = "sessions.delete"
	// CreateKeys allows creating API keys, and changing and revoking one's own.
	CreateKeys Permission = "keys.create"
	// ManageKeys allows changing and revoking all API keys.
	ManageKeys Permission = "keys.manage"
	// ManageProviders allows adding, testing and removing provider keys.
	ManageProviders Permission = "providers.manage"
	// ManagePipeline allows changing the pipeline and the windows of models.
	ManagePipeline Permission = "pipeline.manage"
	// ManagePatterns allows approving, changing and deleting patterns.
	ManagePatterns Permission = "patterns.manage"
	// ManageMembers allows listing members, inviting them and changing their roles.
	ManageMembers Permission = "members.manage"
	// ManageSettings allows changing the workspace's name, retention and TextPolicy.
	ManageSettings Permission = "settings.manage"
	// ReadAudit allows reading the audit log.
	ReadAudit Permission = "audit.read"
	// ExportWorkspace allows exporting all data of the workspace.
	ExportWorkspace Permission = "workspace.export"
	// ManageSignOn allows configuring single sign-on, which decides who can log in as any member.
	ManageSignOn Permission = "sign_on.manage"
	// ManageBilling allows reading invoices, changing the plan and paying.
	ManageBilling Permission = "billing.manage"
	// DeleteWorkspace allows deleting the workspace.
	DeleteWorkspace Permission = "workspace.delete"
)

// adminMay returns the permissions of admins: all except sign-on, billing and deletion.
func adminMay() []Permission {
	return append(regularMay(), DeleteSessions, ManageComments, ManageKeys, ManageProviders, ManagePipeline, ManagePatterns,
		ManageMembers, ManageSettings, ReadAudit, ExportWorkspace, ReadSpend)
}

func regularMay() []Permission {
	return append(viewerMay(), ChangeSessions, CommentSessions, CreateKeys)
}

func viewerMay() []Permission { return append(readerMay(), StarSessions) }

// readerMay returns the read-only permissions.
func readerMay() []Permission {
	return []Permission{Enter, ReadMetrics, ReadConfig, ReadSessions, ReadArchive}
}

// Permissions returns the permissions of a role.
func (r Role) Permissions() []Permission {
	switch r {
	case Owner:
		return append(adminMay(), ManageSignOn, ManageBilling, DeleteWorkspace)
	case Admin:
		return adminMay()
	case Regular:
		return regularMay()
	case Viewer:
		return viewerMay()
	case Billing:
		return []Permission{Enter, ReadMetrics, ReadSpend, ManageBilling}
	case Visitor:
		return append(readerMay(), ReadSpend)
	}
	return nil
}

// May reports whether a role grants a permission.
func (r Role) May(permission Permission) bool { return slices.Contains(r.Permissions(), permission) }

// Permissions returns the permissions of a scope in the product API. A key with ScopeManage has the
// permissions of an admin.
func (s Scope) Permissions() []Permission {
	switch s {
	case ScopeManage:
		return adminMay()
	case ScopeRead:
		return readerMay()
	case ScopeRecall:
		return []Permission{ReadArchive}
	case ScopeSessions:
		return []Permission{ChangeSessions}
	case ScopeProxy:
	}
	return nil
}

// needs returns the permissions that a member must have for their key to use a scope.
func (s Scope) needs() []Permission {
	if s == ScopeProxy {
		return []Permission{CreateKeys}
	}
	return s.Permissions()
}

// MayGrant reports whether a person with some permissions may create a key with scopes. A key never has more
// rights than its creator.
func MayGrant(may func(Permission) bool, scopes []Scope) bool {
	for _, scope := range scopes {
		for _, permission := range scope.needs() {
			if !may(permission) {
				return false
			}
		}
	}
	return true
}

// Backed returns the key's scopes that the person behind it may use with a role; empty for non-members.
func (k APIKey) Backed(role Role) []Scope {
	return slices.DeleteFunc(slices.Clone(k.Scopes), func(scope Scope) bool { return !MayGrant(role.May, []Scope{scope}) })
}

// May reports whether one of a key's scopes grants a permission.
func (k APIKey) May(permission Permission) bool {
	return slices.ContainsFunc(k.Scopes, func(scope Scope) bool { return slices.Contains(scope.Permissions(), permission) })
}
