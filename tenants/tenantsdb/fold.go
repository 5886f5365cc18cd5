package tenantsdb

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

// FoldSums adds all workspaces' records since the last fold to their sums and meters. Recorders only append,
// so that they do not wait for each other's rows. Readers add unfolded records to the sums, so that a fold
// does not change their results. A workspace whose fold fails is left for the next one.
func (db Usage) FoldSums(ctx context.Context) error {
	var workspaces []tenants.WorkspaceID
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT workspace_id FROM rollup_deltas UNION SELECT workspace_id FROM usage_meter_deltas ORDER BY 1").Scan(&workspaces).Error
	})
	if err != nil {
		return fmt.Errorf("list workspaces with sums to fold: %w", err)
	}
	var failures []error
	for _, workspace := range workspaces {
		err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
			return tx.Exec("SELECT fold_sums(?), fold_tag_sums(?)", workspace, workspace).Error
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("fold sums of workspace %s: %w", workspace, err))
		}
	}
	return errors.Join(failures...)
}
