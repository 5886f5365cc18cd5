package tenants

// Tenant is whose rows a store reads and changes, and in which transaction: a WorkspaceID in one
// of its own, what Transactor.Together gives in that one, which all that it is given to share.
// A function that takes a WorkspaceID always works in a transaction of its own.
type Tenant interface{ Workspace() WorkspaceID }

// Workspace implements Tenant.
func (id WorkspaceID) Workspace() WorkspaceID { return id }
