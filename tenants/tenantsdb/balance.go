package tenantsdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// Balance returns what a workspace's exchanges that arrived from one time to another
// (excluded) cost, saved and missed; the cause with most missed tokens comes first.
func (db *DB) Balance(ctx context.Context, workspace uuid.UUID, from, to time.Time) (tenants.Balance, error) {
	var sum balanceRow
	var misses []tenants.Misses
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		query := tx.Table("exchanges e").Select(`count(*) FILTER (WHERE projection > 0) AS edited,
			coalesce(sum(cost_microusd), 0)::bigint AS cost_microusd, coalesce(sum(net_microusd), 0)::bigint AS net_microusd`)
		if err := query.Where(inSpan, workspace, from, to).Take(&sum).Error; err != nil {
			return err
		}
		return tx.Table("exchanges e").Select("miss_cause AS cause, count(*) AS count, sum(missed_tokens)::bigint AS tokens").
			Where(inSpan+" AND e.miss_cause <> ''", workspace, from, to).
			Group("miss_cause").Order("tokens DESC, count DESC, cause").Find(&misses).Error
	})
	if err != nil {
		return tenants.Balance{}, fmt.Errorf("balance of workspace %s: %w", workspace, err)
	}
	return tenants.Balance{Edited: sum.Edited, CostMicroUSD: sum.CostMicroUSD, NetMicroUSD: sum.NetMicroUSD, Misses: misses}, nil
}

// balanceRow are the sums of tenants.Balance.
type balanceRow struct {
	Edited       int64
	CostMicroUSD int64 `gorm:"column:cost_microusd"`
	NetMicroUSD  int64 `gorm:"column:net_microusd"`
}
