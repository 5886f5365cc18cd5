package tenantsdb

import (
	"cmp"
	"context"
	"maps"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Audit stores the audit log.
type Audit struct{ *core }

// audit records a change in its transaction, on behalf of the actor of the transaction's context.
func audit(tx *gorm.DB, workspace tenants.WorkspaceID, change tenants.Change) error {
	actor := tenants.ActorOf(tx.Statement.Context)
	change.Before, change.After = storableFields(change.Before), storableFields(change.After)
	entry := owned[tenants.AuditEntry]{workspace, tenants.AuditEntry{Change: change, ID: uuid.Must(uuid.NewV7()), Actor: actor}}
	return batchdb.Wrapf(create(tx, "audit_entries", &entry, "at"), "note %s", change.Action)
}

// Note records a change from outside this package. In a transaction of Together, the record and the change
// are committed together.
func (db Audit) Note(ctx context.Context, tenant tenants.Tenant, change tenants.Change) error {
	return db.inTenant(ctx, tenant, func(tx *gorm.DB) error { return audit(tx, tenant.Workspace(), change) })
}

const (
	auditPage    = 50
	maxAuditPage = 1000
)

// Together implements tenants.Transactor, for a change and its audit entry.
func (db Audit) Together(ctx context.Context, tenant tenants.Tenant, fn func(tenant tenants.Tenant) error) error {
	return db.together(ctx, tenant, fn)
}

// Audit returns a workspace's audit entries that match a filter, the newest first.
func (db Audit) Audit(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.AuditFilter) ([]tenants.AuditEntry, error) {
	entries, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) ([]tenants.AuditEntry, error) {
		return list[tenants.AuditEntry](audited(tx, workspace, filter))
	})
	return entries, batchdb.Wrapf(err, "audit of workspace %s", workspace)
}

// audited returns the query for the entries that match a filter.
func audited(tx *gorm.DB, workspace tenants.WorkspaceID, filter tenants.AuditFilter) *gorm.DB {
	query := tx.Table("audit_entries").Where("workspace_id = ?", workspace)
	if filter.Before != uuid.Nil {
		query = query.Where("id < ?", filter.Before)
	}
	if filter.Actor != "" {
		name := storable(filter.Actor)
		query = query.Where("(position(lower(?) in lower(actor)) > 0 OR user_id::text = ? OR api_key_id::text = ?)", name, name, name)
	}
	if filter.Action != "" {
		query = query.Where("(action = ? OR split_part(action, '.', 1) = ?)", storable(filter.Action), storable(filter.Action))
	}
	if filter.Except != "" {
		query = query.Where("split_part(action, '.', 1) <> ?", storable(filter.Except))
	}
	if !filter.From.IsZero() {
		query = query.Where("at >= ?", filter.From)
	}
	if !filter.To.IsZero() {
		query = query.Where("at < ?", filter.To)
	}
	return query.Order("id DESC").Limit(min(cmp.Or(filter.Limit, auditPage), maxAuditPage))
}

// storableFields returns fields that a JSON column accepts.
func storableFields(fields tenants.Fields) tenants.Fields {
	fields = maps.Clone(fields)
	for name, value := range fields {
		fields[name] = storable(value)
	}
	return fields
}

// nullable converts an id for a column: NULL for zero.
func nullable[ID ~[16]byte](id ID) uuid.NullUUID {
	return uuid.NullUUID{UUID: uuid.UUID(id), Valid: id != ID{}}
}
