package tenantsdb

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// ProviderKeyUses sums up a workspace's requests since a time by their provider key. It omits keys without
// requests.
func (db ProviderKeys) ProviderKeyUses(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (map[uuid.UUID]tenants.ProviderKeyUse, error) {
	// A key counts as refused from the first refusal after its last success.
	const statement = `
		WITH good AS (
			SELECT k.id, greatest(k.sealed_at, CASE WHEN k.check_ok THEN k.checked_at END, (
				SELECT max(e.at) FROM exchanges e
				WHERE e.workspace_id = k.workspace_id AND e.provider_key_id = k.id AND e.at >= @since AND e.id >= first_exchange_id(@since) AND e.status < 400)) AS at
			FROM provider_keys k WHERE k.workspace_id = @workspace
		)
		SELECT g.id, count(*) AS exchanges, coalesce(sum(e.cost_microusd), 0)::bigint AS cost_micro_usd,
			count(*) FILTER (WHERE e.error_from = 'provider' AND e.status IN (401, 403) AND e.at > g.at) AS rejected,
			min(e.at) FILTER (WHERE e.error_from = 'provider' AND e.status IN (401, 403) AND e.at > g.at) AS since,
			max(e.at) FILTER (WHERE e.error_from = 'provider') AS last_error_at,
			(array_agg(e.status ORDER BY e.at DESC) FILTER (WHERE e.error_from = 'provider'))[1] AS last_status,
			(array_agg(e.error_type ORDER BY e.at DESC) FILTER (WHERE e.error_from = 'provider'))[1] AS last_error
		FROM good g JOIN exchanges e ON e.workspace_id = @workspace AND e.provider_key_id = g.id AND e.at >= @since AND e.id >= first_exchange_id(@since)
		GROUP BY g.id`
	rows, err := batchdb.Scan[[]providerKeyUseRow](ctx, db.tenant(workspace), statement, map[string]any{"workspace": workspace, "since": since})
	uses := make(map[uuid.UUID]tenants.ProviderKeyUse, len(rows))
	for _, row := range rows {
		uses[row.ID] = row.Use
	}
	return uses, batchdb.Wrapf(err, "use of provider keys")
}

type providerKeyUseRow struct {
	ID  uuid.UUID
	Use tenants.ProviderKeyUse `gorm:"embedded"`
}
