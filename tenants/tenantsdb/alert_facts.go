package tenantsdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// RecentFailures counts a workspace's client exchanges since a time, and the failed ones, by the rules of
// tenants.Usage.
func (db Alerts) RecentFailures(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (exchanges, failures int64, err error) {
	var row struct{ Exchanges, Failures int64 }
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT count(*) AS exchanges, count(*) FILTER (WHERE status >= 400 AND status <> 499) AS failures FROM exchanges
			WHERE workspace_id = ? AND at >= ? AND id >= first_exchange_id(?) AND class NOT IN ('summary', 'embedding')`, workspace, since, since).Scan(&row).Error
	})
	return row.Exchanges, row.Failures, batchdb.Wrapf(err, "recent failures of workspace %s", workspace)
}

// maxNews bounds the changes read at once.
const maxNews = 50

// UntoldEntries returns a workspace's audit entries since a time with one of some actions and without an
// alert, the oldest first, at most 50.
func (db Alerts) UntoldEntries(ctx context.Context, workspace tenants.WorkspaceID, since time.Time, actions []tenants.Action) ([]tenants.AuditEntry, error) {
	names := make([]string, len(actions))
	for i, action := range actions {
		names[i] = string(action)
	}
	var rows []auditRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT id, at, user_id, api_key_id, actor, address, action, target, before, after FROM audit_entries
			WHERE workspace_id = ? AND id >= ? AND at >= ? AND action IN ? AND NOT EXISTS (SELECT FROM alert_marks m
				WHERE m.workspace_id = audit_entries.workspace_id AND m.rule = ? AND m.subject = audit_entries.id::text)
			ORDER BY id LIMIT ?`, workspace, firstID(since.Add(-time.Minute)), since, names, string(tenants.AlertAccess), maxNews).Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("audit of workspace %s: %w", workspace, err)
	}
	return toEntries(rows)
}

// IsOperator reports whether a person is an operator of the installation.
func (db Alerts) IsOperator(ctx context.Context, user uuid.UUID) (bool, error) {
	var is bool
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return tx.Raw("SELECT EXISTS (SELECT FROM operators WHERE user_id = ?)", user).Scan(&is).Error
	})
	return is, batchdb.Wrapf(err, "whether user %s is an operator", user)
}

// firstID returns the smallest version 7 id of a time.
func firstID(at time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(max(at.UnixMilli(), 0))<<16)
	return id
}
