package tenantsdb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// maxChoices bounds the combinations of client, model and key in one read.
const maxChoices = 2000

// UsageChoices returns the clients, models and API keys of a workspace's exchanges in the range of a filter,
// aligned, and of its Member. It ignores the rest of the filter.
func (db Usage) UsageChoices(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.UsageFilter) (tenants.UsageChoices, error) {
	var choices tenants.UsageChoices
	filter = tenants.UsageFilter{From: filter.From, To: filter.To, Member: filter.Member}.Aligned()
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		var rows []struct {
			Client, Model string
			APIKeyID      uuid.UUID
		}
		query := rollups(tx, workspace, filter, day, true).Where("exchanges > 0").Distinct("client", "model", "api_key_id")
		if err := query.Limit(maxChoices).Find(&rows).Error; err != nil {
			return err
		}
		names, err := keyNames(tx, workspace)
		for _, row := range rows {
			choices.Clients, choices.Models = append(choices.Clients, row.Client), append(choices.Models, row.Model)
			choices.APIKeys = append(choices.APIKeys, tenants.UsageKey{ID: row.APIKeyID, Name: names[row.APIKeyID.String()]})
		}
		return err
	})
	if err != nil {
		return tenants.UsageChoices{}, fmt.Errorf("what usage of workspace %s is of: %w", workspace, err)
	}
	for _, list := range []*[]string{&choices.Clients, &choices.Models} {
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(name string) bool { return name == "" })
	}
	slices.SortFunc(choices.APIKeys, func(a, b tenants.UsageKey) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.ID[:], b.ID[:]))
	})
	choices.APIKeys = slices.Compact(choices.APIKeys)
	return choices, nil
}

// visibleSince are the values of a query of exchanges since a time, limited to those that the reader may see.
func visibleSince(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) map[string]any {
	seen := tenants.VisibleIn(ctx)
	return map[string]any{"workspace": workspace, "since": since, "all": seen.All, "keys": seen.Keys}
}

// sqlRejections reads, for each key, the exchanges after its newest good answer, since these are few.
const sqlRejections = `
	SELECT k.id AS key, k.name, k.provider, refused.count, refused.since, refused.status
	FROM provider_keys k
		CROSS JOIN LATERAL (SELECT greatest(k.sealed_at, CASE WHEN k.check_ok THEN k.checked_at END, (
			SELECT g.at FROM exchanges g WHERE g.workspace_id = k.workspace_id AND g.provider_key_id = k.id AND g.at >= @since AND g.id >= first_exchange_id(@since) AND g.status < 400
			ORDER BY g.at DESC LIMIT 1)) AS at) good
		CROSS JOIN LATERAL (SELECT count(*) AS count, min(e.at) AS since, (array_agg(e.status ORDER BY e.at DESC))[1] AS status
			FROM exchanges e WHERE e.workspace_id = k.workspace_id AND e.provider_key_id = k.id AND e.at >= @since AND e.id >= first_exchange_id(@since) AND e.at > good.at
				AND (@all OR e.api_key_id IN @keys) AND e.error_from = 'provider' AND e.status IN (401, 403)) refused
	WHERE k.workspace_id = @workspace AND NOT k.disabled AND refused.count > 0
	ORDER BY refused.count DESC, k.name, k.id`

// Rejections returns the enabled provider keys of a workspace that their providers have refused since a time,
// without a later success: an answer, a passed test or a new secret. The key with the most refusals comes
// first.
func (db Usage) Rejections(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) ([]tenants.Rejection, error) {
	rejections, err := batchdb.Scan[[]tenants.Rejection](ctx, db.tenant(workspace), sqlRejections, visibleSince(ctx, workspace, since))
	return rejections, batchdb.Wrapf(err, "refused provider keys of workspace %s", workspace)
}

// sqlKeyFailures reads failed exchanges only, by their index.
const sqlKeyFailures = `
	SELECT e.provider_key_id AS key, count(*) AS count
	FROM exchanges e JOIN provider_keys k ON k.workspace_id = e.workspace_id AND k.id = e.provider_key_id AND NOT k.disabled
	WHERE e.workspace_id = @workspace AND e.at >= @since AND e.id >= first_exchange_id(@since) AND (@all OR e.api_key_id IN @keys)
		AND (e.status >= 400 OR e.error_from <> '') AND (e.status IN (402, 408, 429) OR e.status >= 500)
	GROUP BY 1 ORDER BY 2 DESC, 1`

// KeyFailures implements tenants.UsageReader.
func (db Usage) KeyFailures(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) ([]tenants.KeyFailure, error) {
	failures, err := batchdb.Scan[[]tenants.KeyFailure](ctx, db.tenant(workspace), sqlKeyFailures, visibleSince(ctx, workspace, since))
	return failures, batchdb.Wrapf(err, "failed requests by provider key of workspace %s", workspace)
}

// maxHindrances bounds the number of obstacles returned.
const maxHindrances = 20

const sqlHindrances = `
	SELECT coalesce(event.reason, '') AS reason, e.client, coalesce(e.report->>'client_version', '') AS version, e.model,
		count(*) AS count, min(e.at) AS since
	FROM exchanges e
		LEFT JOIN LATERAL (SELECT x->>'reason' AS reason FROM jsonb_array_elements(e.report->'events') x
			WHERE x->>'type' = 'target_unreachable' LIMIT 1) event ON true
	WHERE e.workspace_id = @workspace AND e.at >= @since AND e.id >= first_exchange_id(@since) AND e.compression = 'unreachable'
		AND (@all OR e.api_key_id IN @keys)
	GROUP BY 1, 2, 3, 4 ORDER BY count DESC, 1, 2, 3, 4 LIMIT @most`

// Obstacles returns the reasons that kept prompts of a workspace above their target since a time, by reason,
// client, its version, and model; the most frequent first.
func (db Usage) Obstacles(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) ([]tenants.Obstacle, error) {
	values := visibleSince(ctx, workspace, since)
	values["most"] = maxHindrances
	obstacles, err := batchdb.Scan[[]tenants.Obstacle](ctx, db.tenant(workspace), sqlHindrances, values)
	return obstacles, batchdb.Wrapf(err, "what kept prompts of workspace %s above their target", workspace)
}

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
