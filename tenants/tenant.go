package tenants

// Tenant selects the rows that a store reads and changes, and the transaction: a WorkspaceID runs each call
// in its own transaction, and the Tenant from Transactor.Together runs all calls in that one. A function that
// takes a WorkspaceID always uses its own transaction.
type Tenant interface{ Workspace() WorkspaceID }

// Workspace implements Tenant.
func (id WorkspaceID) Workspace() WorkspaceID { return id }
