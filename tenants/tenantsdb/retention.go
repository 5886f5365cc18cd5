package tenantsdb

import (
	"context"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Retention returns how long a workspace keeps its sessions. It returns tenants.ErrNotFound.
func (db Data) Retention(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Retention, error) {
	var days []int
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT coalesce(retention_days, 0) FROM workspaces WHERE workspace_id = ?", workspace).Scan(&days).Error
	})
	kept, err := batchdb.First(days, err, tenants.ErrNotFound)
	return tenants.Retention{Days: kept}, batchdb.Wrapf(err, "retention of workspace %s", workspace)
}

// SetRetention sets how long a workspace keeps its sessions. It returns tenants.Invalid or
// tenants.ErrNotFound.
func (db Data) SetRetention(ctx context.Context, tenant tenants.Tenant, retention tenants.Retention) error {
	workspace := tenant.Workspace()
	if err := retention.Validate(); err != nil {
		return err
	}
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		var before []int
		err := tx.Raw("SELECT coalesce(retention_days, 0) FROM workspaces WHERE workspace_id = ? FOR UPDATE", workspace).Scan(&before).Error
		if err == nil && len(before) == 0 {
			err = tenants.ErrNotFound
		}
		if err != nil {
			return err
		}
		err = tx.Exec("UPDATE workspaces SET retention_days = nullif(?::int, 0) WHERE workspace_id = ?", retention.Days, workspace).Error
		if err != nil {
			return err
		}
		return audit(tx, workspace, tenants.Change{
			Action: tenants.RetentionSet, Before: tenants.Retention{Days: before[0]}.Fields(), After: retention.Fields(),
		})
	})
	return batchdb.Wrapf(err, "set retention of workspace %s", workspace)
}
