package tenantsdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
)

// maxPoints bounds the steps of a chart.
const maxPoints = 2000

// usageSums selects the figures of tenants.Usage.
func usageSums() string {
	return sums.SQL(sums.Of[tenants.Usage](), "coalesce(sum(%), 0)::bigint AS %", ", ")
}

// usageOverheads are the histograms below tenants.Overhead, as text.
const usageOverheads = `coalesce(string_agg(array_to_string(overheads, ','), ';'), '') AS overheads`

// Usage adds up exchanges.
type Usage struct{ *core }

// Totals returns the usage of a workspace by the exchanges of a filter, aligned.
func (db Usage) Totals(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter) (tenants.Totals, error) {
	var row pointRow
	filter = filter.Aligned()
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return rollups(tx, workspace, filter, day, filter.IsPart()).Select(usageSums() + ", " + usageOverheads).Take(&row).Error
	})
	if err != nil {
		return tenants.Totals{}, fmt.Errorf("totals of workspace %s: %w", workspace, err)
	}
	return row.toTotals()
}

// Series returns the usage of a workspace for a filter, aligned, in steps of the same length from the start
// of the range, including empty steps. It returns a tenants.Invalid for a step that is not a multiple of
// tenants.UsageStep, and for more than 2000 steps.
func (db Usage) Series(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter, step time.Duration) ([]tenants.Point, error) {
	filter = filter.Aligned()
	if step < tenants.UsageStep || step%tenants.UsageStep != 0 || filter.To.Sub(filter.From)/step >= maxPoints {
		return nil, tenants.Invalid{Field: "step", Message: fmt.Sprintf("must be a multiple of 30 minutes and lead to at most %d steps", maxPoints)}
	}
	widest := tenants.UsageStep
	for _, width := range []time.Duration{quarter, day} {
		if step%width == 0 && filter.From.Equal(filter.From.Truncate(width)) {
			widest = width // no row of this width spans two steps
		}
	}
	var rows []pointRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return rollups(tx, workspace, filter, widest, filter.IsPart()).
			Select("floor(extract(epoch FROM at - ?::timestamptz) / ?::float8)::int AS place, "+usageSums()+", "+usageOverheads, filter.From, step.Seconds()).
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
	if name := by.Tag(); name != "" {
		return db.tagUsage(ctx, workspace, name, filter)
	}
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
	case tenants.ByMember:
		label = "coalesce(p.person_id::text, '')"
	default:
		_, err := tenants.ParseDimension(string(by))
		return nil, err
	}
	filter = filter.Aligned()
	var rows []usageRow
	var names map[string]string
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		query := rollups(tx, workspace, filter, day, filter.IsPart() || by != tenants.ByDay).Select(label + " AS label, " + usageSums())
		if by == tenants.ByMember {
			query = query.Joins("LEFT JOIN (SELECT api_key_id AS key, person_id FROM api_key_people WHERE workspace_id = ?) p ON p.key = api_key_id", workspace)
		}
		err := query.Group("label").Order(order).Find(&rows).Error
		switch {
		case err == nil && by == tenants.ByKey:
			names, err = keyNames(tx, workspace)
		case err == nil && by == tenants.ByMember:
			names, err = memberNames(tx, workspace)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("usage of workspace %s by %s: %w", workspace, by, err)
	}
	split := make([]tenants.UsageRow, len(rows))
	for i, row := range rows {
		split[i] = tenants.UsageRow{Label: row.Label, Name: row.Label, Usage: row.Sums}
		if by == tenants.ByKey || by == tenants.ByMember {
			split[i].Name = names[row.Label]
		}
	}
	return split, nil
}

// The widths of rollups besides tenants.UsageStep.
const (
	quarter = 6 * time.Hour
	day     = 24 * time.Hour
)

// rollups returns a query of the rollups for an aligned filter: rows as wide as possible, with half hours at
// both ends. Without parts, the rows are sums over all clients, models and keys. Records that are not folded
// yet are included.
func rollups(tx *gorm.DB, workspace tenants.WorkspaceID, filter tenants.UsageFilter, widest time.Duration, parts bool) *gorm.DB {
	query := within(tx.Table("rollups_now").Where("workspace_id = ? AND part = ?", workspace, parts), filter, widest)
	if filter.Client != "" {
		query = query.Where("client = left(?, 100)", filter.Client)
	}
	if filter.Model != "" {
		query = query.Where("model = left(?, 200)", filter.Model)
	}
	return ofKeys(query, workspace, filter)
}

// within narrows a query of sums to the range of an aligned filter, in rows as wide as possible.
func within(query *gorm.DB, filter tenants.UsageFilter, widest time.Duration) *gorm.DB {
	first, last := filter.From.Truncate(widest), filter.To.Truncate(widest)
	if first.Before(filter.From) {
		first = first.Add(widest)
	}
	if widest > tenants.UsageStep && first.Before(last) {
		return query.Where("(minutes = ? AND at >= ? AND at < ? OR minutes = 30 AND at >= ? AND at < ? OR minutes = 30 AND at >= ? AND at < ?)",
			int(widest.Minutes()), first, last, filter.From, first, last, filter.To)
	}
	return query.Where("minutes = 30 AND at >= ? AND at < ?", filter.From, filter.To)
}

// ofKeys narrows a query of sums to the API key and the person of a filter.
func ofKeys(query *gorm.DB, workspace tenants.WorkspaceID, filter tenants.UsageFilter) *gorm.DB {
	if filter.APIKey != uuid.Nil {
		query = query.Where("api_key_id = ?", filter.APIKey)
	}
	if filter.Member != uuid.Nil {
		query = query.Where("api_key_id IN ("+keysBehind+")", workspace, filter.Member)
	}
	return query
}

// keysBehind selects the API keys of a workspace that a person is responsible for.
const keysBehind = "SELECT b.api_key_id FROM api_key_people b WHERE b.workspace_id = ? AND b.person_id = ?::uuid"

// memberNames returns the addresses of a workspace's members by their ids.
func memberNames(tx *gorm.DB, workspace tenants.WorkspaceID) (map[string]string, error) {
	var members []struct{ ID, Email string }
	err := tx.Table("members m").Joins("JOIN users u ON u.id = m.user_id").Select("u.id::text AS id, u.email").Where("m.workspace_id = ?", workspace).Find(&members).Error
	names := make(map[string]string, len(members))
	for _, member := range members {
		names[member.ID] = member.Email
	}
	return names, err
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

type pointRow struct {
	Sums tenants.Usage `gorm:"embedded"`

	Place     int
	Overheads string
}

type usageRow struct {
	Sums tenants.Usage `gorm:"embedded"`

	Label string
}

func (r *pointRow) toTotals() (tenants.Totals, error) {
	measured, err := parseHistograms(r.Overheads)
	if err != nil {
		return tenants.Totals{}, err
	}
	return tenants.Totals{Usage: r.Sums, Overhead: measured.overhead()}, nil
}
