package tenantsdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

// Balance returns the cost, savings and misses of a workspace's exchanges for a filter, aligned; the cause
// with most missed tokens comes first.
func (db Usage) Balance(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter) (tenants.Balance, error) {
	row := map[string]any{}
	filter = filter.Aligned()
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		columns := []string{"edited", "cost_microusd", "net_microusd"}
		for _, of := range missColumns() {
			columns = append(columns, of.column, of.column+"_tokens")
		}
		for i := range columns {
			columns[i] = "coalesce(sum(" + columns[i] + "), 0)::bigint AS " + columns[i]
		}
		return rollups(tx, workspace, filter, day, filter.IsPart()).Select(strings.Join(columns, ", ")).Take(&row).Error
	})
	if err != nil {
		return tenants.Balance{}, fmt.Errorf("balance of workspace %s: %w", workspace, err)
	}
	sum := func(column string) int64 { n, _ := row[column].(int64); return n }
	balance := tenants.Balance{Edited: sum("edited"), CostMicroUSD: sum("cost_microusd"), NetMicroUSD: sum("net_microusd")}
	for _, of := range missColumns() {
		if count := sum(of.column); count > 0 {
			balance.Misses = append(balance.Misses, tenants.Misses{Cause: of.cause, Count: count, Tokens: sum(of.column + "_tokens")})
		}
	}
	slices.SortFunc(balance.Misses, func(a, b tenants.Misses) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cause, b.Cause))
	})
	return balance, nil
}

// missColumns names the causes of cache misses, and their columns: requests, and with _tokens their tokens.
func missColumns() []struct{ cause, column string } {
	return []struct{ cause, column string }{
		{"ttl_expiry", "ttl_expiry"}, {"prefix_change_ours", "change_ours"}, {"prefix_change_client", "change_client"},
		{"cold_start", "cold_start"}, {"provider", "evicted"},
	}
}
