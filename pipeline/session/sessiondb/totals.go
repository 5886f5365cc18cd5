package sessiondb

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// sqlTotals sums the requests of a session by model, with the session's index.
const sqlTotals = `SELECT model, count(*), count(*) FILTER (WHERE status >= 400), count(*) FILTER (WHERE miss_cause NOT IN ('', $3)),
		coalesce(sum(missed_tokens) FILTER (WHERE miss_cause NOT IN ('', $3)), 0), coalesce(sum(cost_microusd), 0)
	FROM exchanges WHERE workspace_id = $1 AND session_id = $2 GROUP BY model ORDER BY model`

// Totals returns the sums of all requests of a session.
func (s Browser) Totals(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (session.Totals, error) {
	var totals session.Totals
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return batchdb.Each(tx, func(row pgx.CollectableRow) error {
			var model string
			var of session.Totals
			if err := row.Scan(&model, &of.Requests, &of.Failed, &of.Misses, &of.MissedTokens, &of.CostMicroUSD); err != nil {
				return err
			}
			totals.Requests += of.Requests
			totals.Failed += of.Failed
			totals.Misses += of.Misses
			totals.MissedTokens += of.MissedTokens
			totals.CostMicroUSD += of.CostMicroUSD
			if model != "" {
				totals.Models = append(totals.Models, model)
			}
			return nil
		}, sqlTotals, workspace, id, string(cost.ColdStart))
	})
	return totals, batchdb.Wrapf(err, "totals of session %s", id)
}
