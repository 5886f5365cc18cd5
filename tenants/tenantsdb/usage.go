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

// usageSums are the numbers of tenants.Totals. What each of them counts is said where
// they are added up, in migrations/00145_appended_sums.sql.
const usageSums = `coalesce(sum(exchanges), 0)::bigint AS exchanges, coalesce(sum(failures), 0)::bigint AS failures,
	coalesce(sum(edited), 0)::bigint AS edited, coalesce(sum(epochs), 0)::bigint AS epochs,
	coalesce(sum(epochs_l1), 0)::bigint AS epochs_l1, coalesce(sum(epochs_l2), 0)::bigint AS epochs_l2,
	coalesce(sum(epochs_l3), 0)::bigint AS epochs_l3, coalesce(sum(emergencies), 0)::bigint AS emergencies,
	coalesce(sum(truncations), 0)::bigint AS truncations, coalesce(sum(unreachable), 0)::bigint AS unreachable,
	coalesce(sum(compactions), 0)::bigint AS compactions,
	coalesce(sum(bridged), 0)::bigint AS bridged,
	coalesce(sum(tokens_before), 0)::bigint AS tokens_before, coalesce(sum(tokens_after), 0)::bigint AS tokens_after,
	coalesce(sum(level_0), 0)::bigint AS level_0, coalesce(sum(level_1), 0)::bigint AS level_1,
	coalesce(sum(level_2), 0)::bigint AS level_2, coalesce(sum(level_3), 0)::bigint AS level_3,
	coalesce(sum(input), 0)::bigint AS input, coalesce(sum(cache_read), 0)::bigint AS cache_read,
	coalesce(sum(cache_write), 0)::bigint AS cache_write, coalesce(sum(output), 0)::bigint AS output,
	coalesce(sum(cost_microusd), 0)::bigint AS cost_microusd, coalesce(sum(net_microusd), 0)::bigint AS net_microusd,
	coalesce(sum(unread_microusd), 0)::bigint AS unread_microusd, coalesce(sum(rewritten_microusd), 0)::bigint AS rewritten_microusd,
	coalesce(sum(own_microusd), 0)::bigint AS own_microusd, coalesce(sum(reach), 0)::bigint AS reach`

// usageOverheads are the histograms below tenants.Overhead, as text.
const usageOverheads = `coalesce(string_agg(array_to_string(overheads, ','), ';'), '') AS overheads`

// Usage adds up exchanges.
type Usage struct{ *core }

// Totals returns the usage of a workspace by the exchanges of a filter, aligned.
func (db Usage) Totals(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter) (tenants.Totals, error) {
	var row pointRow
	filter = filter.Aligned()
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return rollups(tx, workspace, filter, day, filter.IsPart()).Select(usageSums + ", " + usageOverheads).Take(&row).Error
	})
	if err != nil {
		return tenants.Totals{}, fmt.Errorf("totals of workspace %s: %w", workspace, err)
	}
	return row.toTotals()
}

// Series returns the usage of a workspace by the exchanges of a filter, aligned, in
// steps of the same length, the first beginning with the range; steps without an
// exchange too. It returns a tenants.Invalid for steps that are no multiple of
// tenants.UsageStep, and for more than 2000 of them.
func (db Usage) Series(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter, step time.Duration) ([]tenants.Point, error) {
	filter = filter.Aligned()
	if step < tenants.UsageStep || step%tenants.UsageStep != 0 || filter.To.Sub(filter.From)/step >= maxPoints {
		return nil, tenants.Invalid{Field: "step", Message: fmt.Sprintf("must be a multiple of 30 minutes and lead to at most %d steps", maxPoints)}
	}
	widest := tenants.UsageStep
	for _, width := range []time.Duration{quarter, day} {
		if step%width == 0 && filter.From.Equal(filter.From.Truncate(width)) {
			widest = width // no row of it is of two steps
		}
	}
	var rows []pointRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return rollups(tx, workspace, filter, widest, filter.IsPart()).
			Select("floor(extract(epoch FROM at - ?::timestamptz) / ?::float8)::int AS place, "+usageSums+", "+usageOverheads, filter.From, step.Seconds()).
			Group("place").Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("series of workspace %s: %w", workspace, err)
	}
	points := make([]tenants.Point, 0, filter.To.Sub(filter.From)/step+1)
	for at := filter.From; at.Before(filter.To); at = at.Add(step) {
		points = append(points, tenants.Point{From: at})
	}
	for _, row := range rows {
		if points[row.Place].Totals, err = row.toTotals(); err != nil {
			return nil, fmt.Errorf("series of workspace %s: %w", workspace, err)
		}
	}
	return points, nil
}

// Usage returns the usage of a workspace by the exchanges of a filter, aligned, split
// by a dimension: days in order, else those with most tokens first.
func (db Usage) Usage(ctx context.Context, workspace tenants.WorkspaceID, by tenants.Dimension, filter tenants.UsageFilter) ([]tenants.UsageRow, error) {
	label, order := "", "tokens_before DESC, exchanges DESC, label"
	switch by {
	case tenants.ByDay:
		label, order = "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD')", "label"
	case tenants.ByClient:
		label = "client"
	case tenants.ByModel:
		label = "model"
	case tenants.ByKey:
		label = "api_key_id::text"
	default:
		return nil, tenants.Invalid{Field: "by", Message: "must be one of day, client, model, key"}
	}
	filter = filter.Aligned()
	var rows []usageRow
	var names map[string]string
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		query := rollups(tx, workspace, filter, day, filter.IsPart() || by != tenants.ByDay).Select(label + " AS label, " + usageSums)
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

// The widths of rollups beside tenants.UsageStep.
const (
	quarter = 6 * time.Hour
	day     = 24 * time.Hour
)

// rollups returns a query of the rollups that make up an aligned filter: rows as wide as
// may be, with half hours before and behind them. Where parts are not asked for, the
// rows are of all clients, models and keys. What no fold has added yet is among them.
func rollups(tx *gorm.DB, workspace tenants.WorkspaceID, filter tenants.UsageFilter, widest time.Duration, parts bool) *gorm.DB {
	query := tx.Table("rollups_now").Where("workspace_id = ? AND part = ?", workspace, parts)
	first, last := filter.From.Truncate(widest), filter.To.Truncate(widest)
	if first.Before(filter.From) {
		first = first.Add(widest)
	}
	if widest > tenants.UsageStep && first.Before(last) {
		query = query.Where("(minutes = ? AND at >= ? AND at < ? OR minutes = 30 AND at >= ? AND at < ? OR minutes = 30 AND at >= ? AND at < ?)",
			int(widest.Minutes()), first, last, filter.From, first, last, filter.To)
	} else {
		query = query.Where("minutes = 30 AND at >= ? AND at < ?", filter.From, filter.To)
	}
	if filter.Client != "" {
		query = query.Where("client = left(?, 100)", filter.Client)
	}
	if filter.Model != "" {
		query = query.Where("model = left(?, 200)", filter.Model)
	}
	if filter.APIKey != uuid.Nil {
		query = query.Where("api_key_id = ?", filter.APIKey)
	}
	return query
}

// keyNames returns the names of a workspace's API keys by their ids.
func keyNames(tx *gorm.DB, workspace tenants.WorkspaceID) (map[string]string, error) {
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
	Exchanges   int64
	Failures    int64
	Edited      int64
	Epochs      int64
	EpochsL1    int64 `gorm:"column:epochs_l1"`
	EpochsL2    int64 `gorm:"column:epochs_l2"`
	EpochsL3    int64 `gorm:"column:epochs_l3"`
	Emergencies int64
	Truncations int64
	Unreachable int64
	Compactions int64
	Bridged     int64

	TokensBefore int64
	TokensAfter  int64
	Level0       int64 `gorm:"column:level_0"`
	Level1       int64 `gorm:"column:level_1"`
	Level2       int64 `gorm:"column:level_2"`
	Level3       int64 `gorm:"column:level_3"`
	Input        int64
	CacheRead    int64
	CacheWrite   int64
	Output       int64

	CostMicroUSD      int64 `gorm:"column:cost_microusd"`
	NetMicroUSD       int64 `gorm:"column:net_microusd"`
	UnreadMicroUSD    int64 `gorm:"column:unread_microusd"`
	RewrittenMicroUSD int64 `gorm:"column:rewritten_microusd"`
	OwnMicroUSD       int64 `gorm:"column:own_microusd"`
	Reach             int64
}

type pointRow struct {
	Sums sums `gorm:"embedded"`

	Place     int
	Overheads string
}

type usageRow struct {
	Sums sums `gorm:"embedded"`

	Label string
}

func (r *pointRow) toTotals() (tenants.Totals, error) {
	measured, err := parseHistograms(r.Overheads)
	if err != nil {
		return tenants.Totals{}, err
	}
	return tenants.Totals{Usage: r.Sums.toUsage(), Overhead: measured.overhead()}, nil
}

func (s *sums) toUsage() tenants.Usage {
	return tenants.Usage{
		Exchanges: s.Exchanges, Failures: s.Failures, Edited: s.Edited,
		UsageEpochs: tenants.UsageEpochs{
			Epochs: s.Epochs, EpochsL1: s.EpochsL1, EpochsL2: s.EpochsL2, EpochsL3: s.EpochsL3, Emergencies: s.Emergencies,
			Truncations: s.Truncations,
		},
		Unreachable: s.Unreachable, Compactions: s.Compactions, Bridged: s.Bridged,
		UsageTokens: tenants.UsageTokens{
			TokensBefore: s.TokensBefore, TokensAfter: s.TokensAfter, Input: s.Input, CacheRead: s.CacheRead,
			CacheWrite: s.CacheWrite, Output: s.Output,
		},
		Levels: [4]int64{s.Level0, s.Level1, s.Level2, s.Level3},
		UsageCost: tenants.UsageCost{
			CostMicroUSD: s.CostMicroUSD, NetMicroUSD: s.NetMicroUSD, UnreadMicroUSD: s.UnreadMicroUSD,
			RewrittenMicroUSD: s.RewrittenMicroUSD, OwnMicroUSD: s.OwnMicroUSD,
		},
		Reach: s.Reach,
	}
}
