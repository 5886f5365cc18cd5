package tenants

import "slices"

// Permission is something that may be done in a workspace. Every route asks for
// one; roles and the scopes of API keys grant them.
type Permission string

// The permissions.
const (
	// Enter is granted to every member: to see where and who they are.
	Enter Permission = "enter"
	// ReadMetrics is to see figures: usage, money, requests without what was said.
	ReadMetrics Permission = "metrics.read"
	// ReadSpend is to see what every member has spent. Everyone sees what they spent themselves.
	ReadSpend Permission = "spend.read"
	// ReadConfig is to see keys, providers, pipeline and patterns, without secrets.
	ReadConfig Permission = "config.read"
	// ReadSessions is to see sessions, and of what was said in them what the
	// workspace's TextPolicy lets the reader see.
	ReadSessions Permission = "sessions.read"
	// ReadArchive is to search and read what the workspace lets one read of what was
	// said in sessions.
	ReadArchive Permission = "archive.read"
	// StarSessions is to star sessions for oneself.
	StarSessions Permission = "sessions.star"
	// CommentSessions is to comment on sessions that one may read, and to delete one's own
	// comments.
	CommentSessions Permission = "sessions.comment"
	// ManageComments is to delete everybody's comments.
	ManageComments Permission = "comments.manage"
	// ChangeSessions is to compact sessions and to pin their turns.
	ChangeSessions Permission = "sessions.change"
	// DeleteSessions is to delete sessions with their archive.
	DeleteSessions Permission = "sessions.delete"
	// CreateKeys is to create API keys, and to change and revoke those that one has
	// created.
	CreateKeys Permission = "keys.create"
	// ManageKeys is to change and revoke everybody's API keys.
	ManageKeys Permission = "keys.manage"
	// ManageProviders is to add, test and remove provider keys.
	ManageProviders Permission = "providers.manage"
	// ManagePipeline is to change the pipeline and the windows of models.
	ManagePipeline Permission = "pipeline.manage"
	// ManagePatterns is to approve, change and delete patterns.
	ManagePatterns Permission = "patterns.manage"
	// ManageMembers is to see members, to invite them and to change their roles.
	ManageMembers Permission = "members.manage"
	// ManageSettings is to change the workspace's name, retention and who may read what
	// was said.
	ManageSettings Permission = "settings.manage"
	// ReadAudit is to read who changed what.
	ReadAudit Permission = "audit.read"
	// ExportWorkspace is to take away everything that is stored.
	ExportWorkspace Permission = "workspace.export"
	// ManageSignOn is to say where the workspace's people prove who they are: it decides
	// who can be anybody in the workspace.
	ManageSignOn Permission = "sign_on.manage"
	// ManageBilling is to see invoices, to change the plan and to pay.
	ManageBilling Permission = "billing.manage"
	// DeleteWorkspace is to delete everything.
	DeleteWorkspace Permission = "workspace.delete"
)

// adminMay is what an admin may: all but sign-on, billing and deletion.
func adminMay() []Permission {
	return append(regularMay(), DeleteSessions, ManageComments, ManageKeys, ManageProviders, ManagePipeline, ManagePatterns,
		ManageMembers, ManageSettings, ReadAudit, ExportWorkspace, ReadSpend)
}

func regularMay() []Permission {
	return append(viewerMay(), ChangeSessions, CommentSessions, CreateKeys)
}

func viewerMay() []Permission { return append(readerMay(), StarSessions) }

// readerMay is what changes nothing.
func readerMay() []Permission {
	return []Permission{Enter, ReadMetrics, ReadConfig, ReadSessions, ReadArchive}
}

// Permissions returns what a role grants.
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

// Permissions returns what a scope grants in the product API. A key that manages
// may what an admin may.
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

// MayGrant reports whether who is granted some permissions may hand out a key with
// scopes: it never may more than they do.
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

// Backed returns those of a key's scopes that it may use while the person behind it has a
// role; empty if they are not a member.
func (k APIKey) Backed(role Role) []Scope {
	return slices.DeleteFunc(slices.Clone(k.Scopes), func(scope Scope) bool { return !MayGrant(role.May, []Scope{scope}) })
}

// May reports whether one of a key's scopes grants a permission.
func (k APIKey) May(permission Permission) bool {
	return slices.ContainsFunc(k.Scopes, func(scope Scope) bool { return slices.Contains(scope.Permissions(), permission) })
}
