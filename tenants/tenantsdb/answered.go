package tenantsdb

import (
	"context"
	"time"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// AnsweredAgain counts a workspace's exchanges since a time that were answered with a provider's earlier
// answer, without asking a provider.
func (db Exchanges) AnsweredAgain(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (int64, error) {
	var hits int64
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("exchanges").Where("workspace_id = ? AND at >= ? AND id >= first_exchange_id(?) AND attempts = 0 AND status < 400", workspace, since, since).
			Where("report->>'cache' IN ('hit', 'semantic-hit')").Count(&hits).Error
	})
	return hits, batchdb.Wrapf(err, "answers given again in workspace %s", workspace)
}
