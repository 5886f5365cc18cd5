package tenantsdb

import (
	"cmp"
	"context"
	"slices"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Balance returns what a workspace's exchanges of a filter, aligned, cost, saved and
// missed; the cause with most missed tokens comes first.
func (db Usage) Balance(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter) (tenants.Balance, error) {
	var row balanceRow
	filter = filter.Aligned()
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return rollups(tx, workspace, filter, day, filter.IsPart()).Select(`coalesce(sum(edited), 0)::bigint AS edited,
			coalesce(sum(cost_microusd), 0)::bigint AS cost_microusd, coalesce(sum(net_microusd), 0)::bigint AS net_microusd,
			coalesce(sum(ttl_expiry), 0)::bigint AS ttl_expiry, coalesce(sum(ttl_expiry_tokens), 0)::bigint AS ttl_expiry_tokens,
			coalesce(sum(change_ours), 0)::bigint AS change_ours, coalesce(sum(change_ours_tokens), 0)::bigint AS change_ours_tokens,
			coalesce(sum(change_client), 0)::bigint AS change_client, coalesce(sum(change_client_tokens), 0)::bigint AS change_client_tokens,
			coalesce(sum(cold_start), 0)::bigint AS cold_start, coalesce(sum(cold_start_tokens), 0)::bigint AS cold_start_tokens,
			coalesce(sum(evicted), 0)::bigint AS evicted, coalesce(sum(evicted_tokens), 0)::bigint AS evicted_tokens`).
			Take(&row).Error
	})
	return tenants.Balance{Edited: row.Edited, CostMicroUSD: row.CostMicroUSD, NetMicroUSD: row.NetMicroUSD, Misses: row.misses()}, batchdb.Wrapf(err, "balance of workspace %s", workspace)
}

// balanceRow are the sums of tenants.Balance.
type balanceRow struct {
	Edited             int64
	CostMicroUSD       int64 `gorm:"column:cost_microusd"`
	NetMicroUSD        int64 `gorm:"column:net_microusd"`
	TTLExpiry          int64 `gorm:"column:ttl_expiry"`
	TTLExpiryTokens    int64 `gorm:"column:ttl_expiry_tokens"`
	ChangeOurs         int64
	ChangeOursTokens   int64
	ChangeClient       int64
	ChangeClientTokens int64
	ColdStart          int64
	ColdStartTokens    int64
	Evicted            int64
	EvictedTokens      int64
}

// misses returns the causes that there were.
func (r *balanceRow) misses() []tenants.Misses {
	misses := slices.DeleteFunc([]tenants.Misses{
		{Cause: "ttl_expiry", Count: r.TTLExpiry, Tokens: r.TTLExpiryTokens},
		{Cause: "prefix_change_ours", Count: r.ChangeOurs, Tokens: r.ChangeOursTokens},
		{Cause: "prefix_change_client", Count: r.ChangeClient, Tokens: r.ChangeClientTokens},
		{Cause: "cold_start", Count: r.ColdStart, Tokens: r.ColdStartTokens},
		{Cause: "provider", Count: r.Evicted, Tokens: r.EvictedTokens},
	}, func(one tenants.Misses) bool { return one.Count == 0 })
	slices.SortFunc(misses, func(a, b tenants.Misses) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cause, b.Cause))
	})
	return misses
}
