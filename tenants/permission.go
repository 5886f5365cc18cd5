package tenants

import "slices"

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
