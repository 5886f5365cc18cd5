package tenantsdb

import (
	"context"
	"time"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// sqlAnswered adds up the newest exchanges of a subquery, all together in the first row and by provider and model.
const sqlAnswered = `
	SELECT coalesce(provider, '') AS provider, coalesce(model, '') AS model, count(*) AS requests,
		count(*) FILTER (WHERE status >= 400 AND status <> 499) AS failed,
		coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY ttfb_us - overhead_us) FILTER (WHERE good), 0) AS first,
		coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_us - overhead_us) FILTER (WHERE good), 0) AS median,
		coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_us - overhead_us) FILTER (WHERE good), 0) AS slow
	FROM (SELECT provider, model, status, greatest(ttfb_us, overhead_us) AS ttfb_us, greatest(duration_us, overhead_us) AS duration_us, overhead_us, status < 400 AND attempts > 0 AS good FROM (?) n) e
	GROUP BY GROUPING SETS ((), (provider, model))
	ORDER BY grouping(provider) DESC, count(*) DESC, 1, 2`

// Answers implements tenants.UsageReader.
func (db Usage) Answers(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter) (all tenants.Answered, parts []tenants.Answered, err error) {
	var rows []struct {
		Provider, Model     string
		Requests, Failed    int64
		First, Median, Slow int64
	}
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		newest := tx.Table("exchanges").Select("provider, model, status, attempts, ttfb_us, duration_us, overhead_us").
			Where("workspace_id = ? AND at >= ? AND at < ? AND id >= first_exchange_id(?)", workspace, filter.From, filter.To, filter.From).
			Where("class NOT IN ('summary', 'embedding')").Order("at DESC, id DESC").Limit(tenants.MaxAnswered)
		if filter.Client != "" {
			newest = newest.Where("client = ?", filter.Client)
		}
		if filter.Model != "" {
			newest = newest.Where("model = ?", filter.Model)
		}
		return tx.Raw(sqlAnswered, ofKeys(newest, workspace, filter)).Scan(&rows).Error
	})
	for i, row := range rows {
		one := tenants.Answered{
			Provider: tenants.Provider(row.Provider), Model: row.Model, Requests: row.Requests, Failed: row.Failed,
			First: time.Duration(row.First) * time.Microsecond, P50: time.Duration(row.Median) * time.Microsecond, P95: time.Duration(row.Slow) * time.Microsecond,
		}
		if i == 0 {
			all = one
			continue
		}
		parts = append(parts, one)
	}
	return all, parts, batchdb.Wrapf(err, "answers of workspace %s", workspace)
}
