package sessiondb

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	// Replicas write in any order: the newest prompt and the newest attempt stay.
	sqlLanes = `INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, fork_epoch, created_at, last_at, position, kind,
			warm_at, warm_seconds, warm_projection, warm_position, warm_tokens, warm_model, warm_key,
			tried_at, fruitless, tried_reason, tried_tokens, tried_limit, fork_insert)
		SELECT $1, id, session_id, nullif(parent_id, '00000000-0000-0000-0000-000000000000'), fork_at, fork_epoch,
			created_at, last_at, position, kind,
			warm_at, warm_seconds, warm_projection, warm_position, warm_tokens, warm_model, warm_key,
			tried_at, fruitless, tried_reason, tried_tokens, tried_limit, fork_insert
		FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::int[], $6::int[], $7::timestamptz[], $8::timestamptz[], $9::int[], $10::text[],
			$11::timestamptz[], $12::int[], $13::int[], $14::int[], $15::int[], $16::text[],
			$17::timestamptz[], $18::int[], $19::text[], $20::int[], $21::int[], $22::int[], $23::uuid[])
			AS t (id, session_id, parent_id, fork_at, fork_epoch, created_at, last_at, position, kind,
				warm_at, warm_seconds, warm_projection, warm_position, warm_tokens, warm_model,
				tried_at, fruitless, tried_reason, tried_tokens, tried_limit, fork_insert, warm_key)
		ON CONFLICT (workspace_id, id) DO UPDATE SET
			last_at = greatest(lanes.last_at, excluded.last_at),
			position = greatest(lanes.position, excluded.position),
			(warm_at, warm_seconds, warm_projection, warm_position, warm_tokens, warm_model, warm_key) = (SELECT
				w.at, w.seconds, w.projection, w.position, w.tokens, w.model, w.key
				FROM (VALUES
					(lanes.warm_at, lanes.warm_seconds, lanes.warm_projection, lanes.warm_position, lanes.warm_tokens, lanes.warm_model, lanes.warm_key, 0),
					(excluded.warm_at, excluded.warm_seconds, excluded.warm_projection, excluded.warm_position, excluded.warm_tokens, excluded.warm_model, excluded.warm_key, 1)
				) AS w (at, seconds, projection, position, tokens, model, key, place)
				ORDER BY w.at DESC NULLS LAST, w.place DESC LIMIT 1),
			(tried_at, fruitless, tried_reason, tried_tokens, tried_limit) = (SELECT
				t.at, t.fruitless, t.reason, t.tokens, t.most
				FROM (VALUES
					(lanes.tried_at, lanes.fruitless, lanes.tried_reason, lanes.tried_tokens, lanes.tried_limit, 0),
					(excluded.tried_at, excluded.fruitless, excluded.tried_reason, excluded.tried_tokens, excluded.tried_limit, 1)
				) AS t (at, fruitless, reason, tokens, most, place)
				ORDER BY t.at DESC NULLS LAST, t.place DESC LIMIT 1)`
	sqlWarm = `SELECT EXISTS (SELECT FROM lanes WHERE workspace_id = $1 AND id = $2
		AND warm_at IS NOT NULL AND (warm_seconds = 0 OR warm_at + make_interval(secs => warm_seconds) > $3))`
	sqlAsk = `UPDATE lanes SET asked_at = $3, asked_by = $4, asked_instructions = $5,
			tried_at = $3, fruitless = 0, tried_reason = '', tried_tokens = 0, tried_limit = 0
		WHERE workspace_id = $1 AND id = $2`
)

// laneRow combines the state of a lane from several exchanges.
type laneRow struct {
	session.Update

	created time.Time
}

// laneRows combines the exchanges of each lane.
func laneRows(updates []session.Update) []laneRow {
	byID := make(map[uuid.UUID]*laneRow)
	for _, one := range updates {
		row, known := byID[one.Lane]
		if !known {
			byID[one.Lane] = &laneRow{Update: one, created: one.At}
			continue
		}
		row.Messages.Position = max(row.Messages.Position, one.Messages.Position)
		if one.At.After(row.At) {
			row.At = one.At
		}
		if one.At.Before(row.created) {
			row.created = one.At
		}
		if !one.Heat.At.Before(row.Heat.At) {
			row.Heat = one.Heat
		}
		if !one.Attempts.At.Before(row.Attempts.At) {
			row.Attempts = one.Attempts
		}
	}
	return sorted(byID, func(a, b *laneRow) int { return bytes.Compare(a.Lane[:], b.Lane[:]) })
}

func recordLanes(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	var (
		ids, sessions, parents, keys  []uuid.UUID
		forkAt, forkEpochs, positions []int
		forkInserts                   []int
		created, last                 []time.Time
		kinds                         []string

		warmAt, triedAt                            []*time.Time
		seconds, projections, warmPositions, sizes []int
		fruitless, triedSizes, triedLimits         []int
		models, reasons                            []string
	)
	for _, row := range laneRows(updates) {
		ids, sessions, parents = append(ids, row.Lane), append(sessions, row.Session), append(parents, row.Parent)
		forkAt, forkEpochs, positions = append(forkAt, row.ForkAt), append(forkEpochs, row.Inherited), append(positions, row.Messages.Position)
		forkInserts = append(forkInserts, row.Taken)
		created, last = append(created, row.created), append(last, row.At)
		kinds = append(kinds, string(cmp.Or(row.Kind, session.Main)))

		heat := row.Heat
		warmAt, seconds = append(warmAt, orNull(heat.At)), append(seconds, int(heat.TTL/time.Second))
		projections, warmPositions = append(projections, heat.Projection), append(warmPositions, heat.Position)
		sizes, models, keys = append(sizes, heat.Tokens), append(models, storable(heat.Model)), append(keys, heat.Key)

		attempts := row.Attempts
		triedAt, fruitless = append(triedAt, orNull(attempts.At)), append(fruitless, attempts.Fruitless)
		reasons = append(reasons, storable(attempts.Reason))
		triedSizes, triedLimits = append(triedSizes, attempts.Size), append(triedLimits, attempts.Limit)
	}
	return batchdb.Later(tx, sqlLanes, workspace,
		ids, sessions, parents, forkAt, forkEpochs, created, last, positions, kinds,
		warmAt, seconds, projections, warmPositions, sizes, models,
		triedAt, fruitless, reasons, triedSizes, triedLimits, forkInserts, keys)
}

// orNull returns a time for storing, with NULL for the zero time.
func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// scanLane reads the stored state of a lane.
func scanLane(row *sql.Row, found *session.Found) error {
	var warmAt, triedAt, askedAt sql.NullTime
	var askedBy uuid.NullUUID
	var seconds int
	err := row.Scan(&found.Session, &found.Tip, &found.Kind, &found.Name, &found.Source, &found.Archived,
		&warmAt, &seconds, &found.Heat.Projection, &found.Heat.Position, &found.Heat.Tokens, &found.Heat.Model, &found.Heat.Key,
		&triedAt, &found.Attempts.Fruitless, &found.Attempts.Reason, &found.Attempts.Size, &found.Attempts.Limit,
		&askedAt, &askedBy, &found.Order.Instructions, &found.IsFork, &found.Pinned)
	found.Heat.At, found.Heat.TTL = warmAt.Time, time.Duration(seconds)*time.Second
	found.Attempts.At = triedAt.Time
	found.Order.At, found.Order.By = askedAt.Time, askedBy.UUID
	return err
}

// checkCold returns session.ErrWarm if the provider's cache of the lane is alive at a time.
func checkCold(tx *gorm.DB, workspace tenants.WorkspaceID, lane uuid.UUID, now time.Time) error {
	var warm bool
	row := tx.Statement.ConnPool.QueryRowContext(tx.Statement.Context, sqlWarm, workspace, lane, now)
	if err := row.Scan(&warm); err != nil {
		return err
	}
	if warm {
		return session.ErrWarm
	}
	return nil
}

// Ask stores an order, so that the lane's next request makes an epoch. It closes the lane's breaker and makes
// every replica reload the lane. It returns session.ErrNotFound if the workspace has no such lane.
func (s Browser) Ask(ctx context.Context, tenant tenants.Tenant, lane uuid.UUID, order session.Order) error {
	err := s.change(ctx, tenant, lane, sqlAsk, tenant.Workspace(), lane, order.At, order.By, storable(order.Instructions))
	return batchdb.Wrapf(err, "ask for an epoch of lane %s", lane)
}
