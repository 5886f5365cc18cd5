package tenantsdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Audit stores the audit log.
type Audit struct{ *core }

// audit records a change in its transaction, on behalf of the actor of the transaction's context.
func audit(tx *gorm.DB, workspace tenants.WorkspaceID, change tenants.Change) error {
	before, err := fieldsJSON(change.Before)
	if err != nil {
		return err
	}
	after, err := fieldsJSON(change.After)
	if err != nil {
		return err
	}
	actor := tenants.ActorOf(tx.Statement.Context)
	err = tx.Exec(`INSERT INTO audit_entries (workspace_id, id, user_id, api_key_id, actor, address, action, target, before, after)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb)`,
		workspace, uuid.Must(uuid.NewV7()), nullable(actor.User), nullable(actor.APIKey), storable(actor.Name), actor.From,
		string(change.Action), storable(change.Target), before, after).Error
	return batchdb.Wrapf(err, "note %s", change.Action)
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
	var rows []auditRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return audited(tx, workspace, filter).Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("audit of workspace %s: %w", workspace, err)
	}
	return toEntries(rows)
}

// audited returns the query for the entries that match a filter.
func audited(tx *gorm.DB, workspace tenants.WorkspaceID, filter tenants.AuditFilter) *gorm.DB {
	query := tx.Table("audit_entries").
		Select("id, at, user_id, api_key_id, actor, address, action, target, before, after").
		Where("workspace_id = ?", workspace)
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

type auditRow struct {
	ID       uuid.UUID
	At       time.Time
	UserID   uuid.NullUUID
	APIKeyID uuid.NullUUID `gorm:"column:api_key_id"`
	Actor    string
	Address  string
	Action   string
	Target   string
	Before   []byte
	After    []byte
}

func toEntries(rows []auditRow) ([]tenants.AuditEntry, error) {
	entries := make([]tenants.AuditEntry, len(rows))
	for i, row := range rows {
		entry, err := row.toEntry()
		if err != nil {
			return nil, fmt.Errorf("audit entry %s: %w", row.ID, err)
		}
		entries[i] = entry
	}
	return entries, nil
}

func (r auditRow) toEntry() (tenants.AuditEntry, error) {
	entry := tenants.AuditEntry{
		ID: r.ID, At: r.At, Actor: tenants.Actor{User: r.UserID.UUID, APIKey: r.APIKeyID.UUID, Name: r.Actor, From: r.Address},
		Change: tenants.Change{Action: tenants.Action(r.Action), Target: r.Target},
	}
	for fields, stored := range map[*tenants.Fields][]byte{&entry.Before: r.Before, &entry.After: r.After} {
		if stored == nil {
			continue
		}
		if err := json.Unmarshal(stored, fields); err != nil {
			return tenants.AuditEntry{}, err
		}
	}
	return entry, nil
}

// fieldsJSON returns fields as JSON; nil if absent.
func fieldsJSON(fields tenants.Fields) (*string, error) {
	if fields == nil {
		return nil, nil //nolint:nilnil // the column's NULL
	}
	stored := make(tenants.Fields, len(fields))
	for name, value := range fields {
		stored[name] = storable(value)
	}
	bytes, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("write fields: %w", err)
	}
	text := string(bytes)
	return &text, nil
}

// nullable converts an id for a column: NULL for zero.
func nullable[ID ~[16]byte](id ID) uuid.NullUUID {
	return uuid.NullUUID{UUID: uuid.UUID(id), Valid: id != ID{}}
}
