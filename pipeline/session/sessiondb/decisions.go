package sessiondb

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
)

// sqlDecisions finds for each lane of a session the lanes whose projections it has, above their fork and up
// to the number at which it left them, and sums its exchanges by epoch. The condition that a projection is
// above 0 is redundant, but required for the index of projections.
const sqlDecisions = `WITH RECURSIVE line AS (
		SELECT l.id AS lane, l.id AS maker, l.parent_id, l.fork_epoch AS above, 2147483647 AS upto
		FROM lanes l WHERE l.workspace_id = $1 AND l.session_id = $2
		UNION ALL
		SELECT line.lane, p.id, p.parent_id, p.fork_epoch, line.above
		FROM line JOIN lanes p ON p.workspace_id = $1 AND p.id = line.parent_id
		WHERE line.above > 0
	), earned AS (
		SELECT line.maker, e.projection, count(*) AS exchanges, sum(e.net_microusd)::bigint AS realized, count(*) FILTER (WHERE e.reach) AS reach,
			max(e.predicted_microusd) FILTER (WHERE e.lane_id = line.maker) AS predicted
		FROM line JOIN exchanges e ON e.workspace_id = $1 AND e.lane_id = line.lane
			AND e.projection > 0 AND e.projection > line.above AND e.projection <= line.upto
		GROUP BY line.maker, e.projection
	)
	SELECT o.lane_id, o.number, o.reason, o.created_at, o.tokens_before, o.tokens_after,
		earned.predicted, made.worst, coalesce(earned.realized, 0), coalesce(earned.exchanges, 0), coalesce(earned.reach, 0)
	FROM lanes l JOIN epochs o ON o.workspace_id = $1 AND o.lane_id = l.id
		LEFT JOIN earned ON earned.maker = o.lane_id AND earned.projection = o.number
		LEFT JOIN LATERAL (
			SELECT jsonb_path_query_first(e.report, '$.events[*] ? (@.type == "completed").counts.worst_net_microusd')::bigint AS worst
			FROM exchanges e WHERE e.workspace_id = $1 AND e.lane_id = o.lane_id AND e.projection = o.number AND e.projection > 0
				AND e.predicted_microusd IS NOT NULL LIMIT 1
		) made ON true
	WHERE l.workspace_id = $1 AND l.session_id = $2 ORDER BY o.created_at, o.number`

// Decisions returns the epochs of a session, oldest first, each with its predicted savings and its savings so
// far in all lanes that have its projection.
func (s Browser) Decisions(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) ([]cost.Decision, error) {
	var decisions []cost.Decision
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		decisions, err = batchdb.Rows(tx, func(row pgx.CollectableRow) (one cost.Decision, err error) {
			var predicted sql.NullInt64
			err = row.Scan(&one.Lane, &one.Number, &one.Reason, &one.At, &one.Before, &one.After,
				&predicted, &one.Worst, &one.Realized, &one.Exchanges, &one.Reach)
			if err != nil {
				return one, err
			}
			one.Predicted, one.Guessed = predicted.Int64, predicted.Valid
			return one, nil
		}, sqlDecisions, workspace, id)
		return err
	})
	return decisions, batchdb.Wrapf(err, "decisions of session %s", id)
}
