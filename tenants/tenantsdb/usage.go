package tenantsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
)

// maxPoints bounds the steps of a chart.
const maxPoints = 2000

// usageSums selects the figures of tenants.Usage and tenants.PromptUsage.
func usageSums() string {
	return sums.SQL(append(sums.Of[tenants.Usage](), sums.Of[tenants.PromptUsage]()...), "coalesce(sum(%), 0)::bigint AS %", ", ")
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
		split[i] = tenants.UsageRow{Label: row.Label, Name: row.Label, Usage: row.Sums, Prompts: row.Prompts}
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
// both ends. Without parts, the rows are sums over all clients, models and keys, unless the reader may see only
// some keys. Records that are not folded yet are included.
func rollups(tx *gorm.DB, workspace tenants.WorkspaceID, filter tenants.UsageFilter, widest time.Duration, parts bool) *gorm.DB {
	parts = parts || !tenants.VisibleIn(tx.Statement.Context).All
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

// ofVisible limits a query of exchanges, of sums or of API keys to those that the context's reader may see.
func ofVisible(query *gorm.DB) *gorm.DB {
	if seen := tenants.VisibleIn(query.Statement.Context); !seen.All {
		return query.Where("api_key_id IN ?", seen.Keys)
	}
	return query
}

// ofKeys narrows a query of sums to the API key and the person of a filter.
func ofKeys(query *gorm.DB, workspace tenants.WorkspaceID, filter tenants.UsageFilter) *gorm.DB {
	query = ofVisible(query)
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
	Sums    tenants.Usage       `gorm:"embedded"`
	Prompts tenants.PromptUsage `gorm:"embedded"`

	Place     int
	Overheads string
}

type usageRow struct {
	Sums    tenants.Usage       `gorm:"embedded"`
	Prompts tenants.PromptUsage `gorm:"embedded"`

	Label string
}

func (r *pointRow) toTotals() (tenants.Totals, error) {
	measured, err := parseHistograms(r.Overheads)
	if err != nil {
		return tenants.Totals{}, err
	}
	return tenants.Totals{Usage: r.Sums, Prompts: r.Prompts, Overhead: measured.overhead()}, nil
}

// tagUsage returns the usage of a workspace by the values of a tag, the ones with most tokens first. The last
// row, without a label, sums up requests without the tag, so that all rows add up to the whole.
func (db Usage) tagUsage(ctx context.Context, workspace tenants.WorkspaceID, name string, filter tenants.UsageFilter) ([]tenants.UsageRow, error) {
	if filter.Client != "" || filter.Model != "" {
		return nil, tenants.Invalid{Field: "by", Message: "cannot be a tag together with client or model: tags are added up by API key only"}
	}
	all := sums.Of[tenants.Usage]() // the sums that are kept of tags
	selected := sums.SQL(all, "coalesce(sum(%), 0)::bigint AS %", ", ")
	filter = filter.Aligned()
	var rows []struct {
		Row usageRow `gorm:"embedded"`

		Tagged bool
	}
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		whole := rollups(tx, workspace, filter, day, filter.IsPart()).Select(selected)
		parts := within(tx.Table("tag_sums_now").Where("workspace_id = ? AND name = ?", workspace, name), filter, day)
		parts = ofKeys(parts, workspace, filter).Select("value AS label, " + selected).Group("value")
		// One statement: both are of the same moment.
		return tx.Raw("SELECT * FROM (SELECT false AS tagged, '' AS label, w.* FROM (?) w UNION ALL SELECT true, p.* FROM (?) p) u"+ //nolint:unqueryvet // both select
			" ORDER BY tagged, tokens_before DESC, exchanges DESC, label", whole, parts).Scan(&rows).Error
	})
	if err != nil {
		return nil, batchdb.Wrapf(err, "usage of workspace %s by tag %s", workspace, name)
	}
	split, rest := make([]tenants.UsageRow, 0, len(rows)), tenants.Usage{}
	for i := range rows {
		row := &rows[i].Row
		if !rows[i].Tagged {
			rest = row.Sums
			continue
		}
		split = append(split, tenants.UsageRow{Label: row.Label, Name: row.Label, Usage: row.Sums})
		for _, sum := range all {
			sum.Add(&rest, -sum.In(&row.Sums))
		}
	}
	if rest != (tenants.Usage{}) {
		split = append(split, tenants.UsageRow{Usage: rest})
	}
	return split, nil
}

const (
	firstBucket = 32 * time.Microsecond // smaller values are in bucket 0
	perDoubling = 8                     // buckets, from there on
)

// histogram counts exchanges by the bucket of their overhead, as the database's overhead_bucket defines it:
// bucket i begins at 32 µs · 2^((i−1)/8), bucket 0 at 0.
type histogram []int64

// parseHistograms returns the sum of histograms in the form "0,3,1;2". A month may have thousands.
func parseHistograms(text string) (histogram, error) {
	var sum histogram
	bucket, count := 0, int64(0)
	for i := range len(text) + 1 {
		if i < len(text) && text[i] >= '0' && text[i] <= '9' {
			count = 10*count + int64(text[i]-'0')
			continue
		}
		if i < len(text) && text[i] != ',' && text[i] != ';' {
			return nil, fmt.Errorf("histogram of overheads: %q at %d", text[i], i)
		}
		if bucket == len(sum) {
			sum = append(sum, 0)
		}
		sum[bucket] += count
		bucket, count = bucket+1, 0
		if i < len(text) && text[i] == ';' {
			bucket = 0
		}
	}
	return sum, nil
}

// overhead returns the histogram's Overhead.
func (h histogram) overhead() tenants.Overhead {
	measured := int64(0)
	for _, count := range h {
		measured += count
	}
	return tenants.Overhead{P50: h.quantile(0.50, measured), P99: h.quantile(0.99, measured), Measured: measured}
}

// quantile returns the middle of the bucket of the nearest rank: its geometric mean, which deviates by a
// factor of at most 2^(1/16) = 1.044.
func (h histogram) quantile(part float64, measured int64) time.Duration {
	rank := int64(math.Ceil(part * float64(measured)))
	for i, count := range h {
		if rank -= count; rank > 0 || count == 0 {
			continue
		}
		if i == 0 {
			return firstBucket / 2
		}
		return time.Duration(float64(firstBucket) * math.Exp2((float64(i)-0.5)/perDoubling))
	}
	return 0
}

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

// AnsweredAgain counts a workspace's exchanges since a time that were answered with a provider's earlier
// answer, without asking a provider.
func (db Exchanges) AnsweredAgain(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (int64, error) {
	var hits int64
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return ofVisible(tx.Table("exchanges")).Where("workspace_id = ? AND at >= ? AND id >= first_exchange_id(?) AND attempts = 0 AND status < 400", workspace, since, since).
			Where("report->>'cache' IN ('hit', 'semantic-hit')").Count(&hits).Error
	})
	return hits, batchdb.Wrapf(err, "answers given again in workspace %s", workspace)
}

// FoldSums adds all workspaces' records since the last fold to their sums and meters. Recorders only append,
// so that they do not wait for each other's rows. Readers add unfolded records to the sums, so that a fold
// does not change their results. A workspace whose fold fails is left for the next one.
func (db Usage) FoldSums(ctx context.Context) error {
	workspaces, err := batchdb.Scan[[]tenants.WorkspaceID](ctx, db.asWorker, "SELECT workspace_id FROM rollup_deltas UNION SELECT workspace_id FROM usage_meter_deltas ORDER BY 1")
	if err != nil {
		return fmt.Errorf("list workspaces with sums to fold: %w", err)
	}
	var failures []error
	for _, workspace := range workspaces {
		err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
			return batchdb.Write(tx, "SELECT fold_sums(?), fold_tag_sums(?)", workspace, workspace)
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("fold sums of workspace %s: %w", workspace, err))
		}
	}
	return errors.Join(failures...)
}
