package tenantsdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// maxPoints bounds the steps of a chart.
const maxPoints = 2000

// usageSums are the numbers of tenants.Usage, in its order: the one place where
// they are made.
const usageSums = `count(*) AS exchanges,
	count(*) FILTER (WHERE status >= 400 AND status <> 499) AS failures,
	count(*) FILTER (WHERE compression = 'epoch') AS epochs,
	coalesce(sum(tokens_before), 0)::bigint AS tokens_before,
	coalesce(sum(tokens_after), 0)::bigint AS tokens_after,
	coalesce(sum(input_tokens), 0)::bigint AS input,
	coalesce(sum(cache_read_tokens), 0)::bigint AS cache_read,
	coalesce(sum(cache_write_tokens), 0)::bigint AS cache_write,
	coalesce(sum(output_tokens), 0)::bigint AS output,
	coalesce(sum(cost_microusd), 0)::bigint AS cost_microusd,
	coalesce(sum(net_microusd), 0)::bigint AS net_microusd`

// inSpan are the exchanges of a workspace that arrived in a span of time.
const inSpan = "e.workspace_id = ? AND e.at >= ? AND e.at < ?"

// Totals returns the usage of a workspace by exchanges that arrived from one time
// to another (excluded).
func (db *DB) Totals(ctx context.Context, workspace uuid.UUID, from, to time.Time) (tenants.Totals, error) {
	var row totalsRow
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("exchanges e").Select(usageSums+`,
			coalesce(percentile_cont(0.50) WITHIN GROUP (ORDER BY overhead_us) FILTER (WHERE attempts > 0), 0) AS overhead_p50,
			coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY overhead_us) FILTER (WHERE attempts > 0), 0) AS overhead_p99`).
			Where(inSpan, workspace, from, to).Take(&row).Error
	})
	if err != nil {
		return tenants.Totals{}, fmt.Errorf("totals of workspace %s: %w", workspace, err)
	}
	return tenants.Totals{
		Usage: row.Sums.toUsage(), OverheadP50: microseconds(int64(row.OverheadP50)), OverheadP99: microseconds(int64(row.OverheadP99)),
	}, nil
}

// Series returns the usage of a workspace from one time to another (excluded) in
// steps of the same length, the first beginning at from; steps without an
// exchange too. It returns a tenants.Invalid for more than 2000 steps.
func (db *DB) Series(ctx context.Context, workspace uuid.UUID, from, to time.Time, step time.Duration) ([]tenants.Point, error) {
	if step < time.Second || to.Sub(from)/step >= maxPoints {
		return nil, tenants.Invalid{Field: "step", Message: fmt.Sprintf("must be at least a second and lead to at most %d steps", maxPoints)}
	}
	var rows []pointRow
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("exchanges e").
			Select("floor(extract(epoch FROM e.at - ?::timestamptz) / ?::float8)::int AS place, "+usageSums, from, step.Seconds()).
			Where(inSpan, workspace, from, to).Group("place").Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("series of workspace %s: %w", workspace, err)
	}
	points := make([]tenants.Point, 0, to.Sub(from)/step+1)
	for at := from; at.Before(to); at = at.Add(step) {
		points = append(points, tenants.Point{From: at})
	}
	for _, row := range rows {
		points[row.Place].Usage = row.Sums.toUsage()
	}
	return points, nil
}

// Usage returns the usage of a workspace from one time to another (excluded),
// split by a dimension: days in order, else those with most tokens first.
func (db *DB) Usage(ctx context.Context, workspace uuid.UUID, by tenants.Dimension, from, to time.Time) ([]tenants.UsageRow, error) {
	label, order := "", "tokens_before DESC, exchanges DESC, label"
	switch by {
	case tenants.ByDay:
		label, order = "to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD')", "label"
	case tenants.ByClient:
		label = "e.client"
	case tenants.ByModel:
		label = "e.model"
	case tenants.ByKey:
		label = "e.api_key_id::text"
	default:
		return nil, tenants.Invalid{Field: "by", Message: "must be one of day, client, model, key"}
	}
	var rows []usageRow
	var names map[string]string
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		query := tx.Table("exchanges e").Select(label+" AS label, "+usageSums).Where(inSpan, workspace, from, to)
		if err := query.Group("label").Order(order).Find(&rows).Error; err != nil || by != tenants.ByKey {
			return err
		}
		var err error
		names, err = keyNames(tx, workspace)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("usage of workspace %s by %s: %w", workspace, by, err)
	}
	split := make([]tenants.UsageRow, len(rows))
	for i, row := range rows {
		split[i] = tenants.UsageRow{Label: row.Label, Name: row.Label, Usage: row.Sums.toUsage()}
		if by == tenants.ByKey {
			split[i].Name = names[row.Label]
		}
	}
	return split, nil
}

// keyNames returns the names of a workspace's API keys by their ids.
func keyNames(tx *gorm.DB, workspace uuid.UUID) (map[string]string, error) {
	var keys []struct {
		ID   uuid.UUID
		Name string
	}
	if err := tx.Table("api_keys").Select("id, name").Where("workspace_id = ?", workspace).Find(&keys).Error; err != nil {
		return nil, err
	}
	names := make(map[string]string, len(keys))
	for _, key := range keys {
		names[key.ID.String()] = key.Name
	}
	return names, nil
}

// sums are the columns of usageSums.
type sums struct {
	Exchanges    int64
	Failures     int64
	Epochs       int64
	TokensBefore int64
	TokensAfter  int64
	Input        int64
	CacheRead    int64
	CacheWrite   int64
	Output       int64
	CostMicroUSD int64 `gorm:"column:cost_microusd"`
	NetMicroUSD  int64 `gorm:"column:net_microusd"`
}

type totalsRow struct {
	Sums sums `gorm:"embedded"`

	OverheadP50 float64 `gorm:"column:overhead_p50"`
	OverheadP99 float64 `gorm:"column:overhead_p99"`
}

type pointRow struct {
	Sums sums `gorm:"embedded"`

	Place int
}

type usageRow struct {
	Sums sums `gorm:"embedded"`

	Label string
}

func (s sums) toUsage() tenants.Usage { return tenants.Usage(s) }
