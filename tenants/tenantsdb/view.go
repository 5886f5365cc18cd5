package tenantsdb

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Views reads saved views from an earlier version.
type Views struct{ *core }

// EveryView returns up to limit views of all people of a workspace with ids after one, in order; uuid.Nil
// starts at the first.
func (db Views) EveryView(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) (views []tenants.View, err error) {
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("views").Select(`id, user_id AS "user", list, name, query, saved_at`).
			Where("workspace_id = ? AND id > ?", workspace, after).Order("id").Limit(limit).Find(&views).Error
	})
	return views, batchdb.Wrapf(err, "views of everybody")
}
