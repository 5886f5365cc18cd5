package sessiondb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
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
	decisions, err := batchdb.List(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) (one cost.Decision, err error) {
		var predicted sql.NullInt64
		err = row.Scan(&one.Lane, &one.Number, &one.Reason, &one.At, &one.Before, &one.After,
			&predicted, &one.Worst, &one.Realized, &one.Exchanges, &one.Reach)
		if err != nil {
			return one, err
		}
		one.Predicted, one.Guessed = predicted.Int64, predicted.Valid
		return one, nil
	}, sqlDecisions, workspace, id)
	return decisions, batchdb.Wrapf(err, "decisions of session %s", id)
}

// sqlTotals sums the requests of a session by model, with the session's index.
const sqlTotals = `SELECT model, count(*), count(*) FILTER (WHERE status >= 400), count(*) FILTER (WHERE miss_cause NOT IN ('', $3)),
		coalesce(sum(missed_tokens) FILTER (WHERE miss_cause NOT IN ('', $3)), 0), coalesce(sum(cost_microusd), 0)
	FROM exchanges WHERE workspace_id = $1 AND session_id = $2 GROUP BY model ORDER BY model`

// Totals returns the sums of all requests of a session.
func (s Browser) Totals(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (session.Totals, error) {
	var totals session.Totals
	err := batchdb.ForEach(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) error {
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
	return totals, batchdb.Wrapf(err, "totals of session %s", id)
}

// sqlCourse numbers the requests of a lane with the index exchanges_session only, finds the newest events
// with exchanges_happened, and reads only the chosen rows: the last request of each of $4 intervals of equal
// length, and $5 events with their reports.
const sqlCourse = `WITH placed AS MATERIALIZED (
		SELECT id, row_number() OVER (ORDER BY at, id) AS n, count(*) OVER () AS total
		FROM exchanges WHERE workspace_id = $1 AND session_id = $2 AND lane_id = $3 AND tokens_before > 0
	), happened AS MATERIALIZED (
		SELECT id FROM exchanges WHERE workspace_id = $1 AND session_id = $2 AND lane_id = $3 AND tokens_before > 0
			AND (compression NOT IN ('', 'none', 'frozen', 'bypassed') OR class = 'after-compaction' OR compacted)
		ORDER BY at DESC, id DESC LIMIT $5
	), chosen AS (
		SELECT p.id, n, total, h.id IS NOT NULL AS is_event,
			n = total OR (n * $4::bigint + total - 1) / total < ((n + 1) * $4::bigint + total - 1) / total AS is_point
		FROM placed p LEFT JOIN happened h ON h.id = p.id
	)
	SELECT n, x.at, x.tokens_before, x.tokens_after, x.window_tokens, x.target_tokens, x.compression, x.class, x.level_0, x.level_1, x.level_2, x.level_3,
		x.miss_cause, x.missed_tokens, x.projection, x.net_microusd, x.reach, x.status, x.answered_by,
		x.cost_microusd, x.input_tokens, x.cache_read_tokens, x.cache_write_tokens, x.duration_us, CASE WHEN is_event THEN x.report END, total, is_point, is_event
	FROM chosen CROSS JOIN LATERAL (SELECT * FROM exchanges e WHERE e.workspace_id = $1 AND e.id = chosen.id LIMIT 1) x
	WHERE is_point OR is_event ORDER BY n`

// Timeline returns the growth of a lane's prompts in at most points moments. It reads only those rows and
// session.MaxEvents, even for a long session.
func (s Browser) Timeline(ctx context.Context, workspace tenants.WorkspaceID, id, lane uuid.UUID, points int) (session.Timeline, error) {
	var timeline session.Timeline
	err := batchdb.ForEach(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) error {
		var m session.TimelineEntry
		var isPoint, isEvent bool
		var took int64
		err := row.Scan(&m.Number, &m.At, &m.Before, &m.After, &m.Window, &m.Target, &m.Compression, &m.Class,
			&m.Levels[0], &m.Levels[1], &m.Levels[2], &m.Levels[3],
			&m.MissCause, &m.MissedTokens, &m.Projection, &m.NetMicroUSD, &m.Reach, &m.Status, &m.AnsweredBy,
			&m.CostMicroUSD, &m.Input, &m.CacheRead, &m.CacheWrite, &took, &m.Report, &timeline.Total, &isPoint, &isEvent)
		if err != nil {
			return err
		}
		m.Duration = time.Duration(took) * time.Microsecond
		if isEvent {
			timeline.Events = append(timeline.Events, m)
		}
		if isPoint {
			m.Report = nil
			timeline.Points = append(timeline.Points, m)
		}
		return nil
	}, sqlCourse, workspace, id, lane, points, session.MaxEvents)
	return timeline, batchdb.Wrapf(err, "timeline of lane %s", lane)
}

// askedMargin is how much earlier or later than its messages a request may be recorded.
const askedMargin = time.Hour

// mostAsked bounds the requests of one page of messages.
const mostAsked = 500

// sqlAsked reads the newest request of each number of messages, along the index of a session's requests.
const sqlAsked = `SELECT DISTINCT ON (position) id, position, at, status, cost_microusd, input_tokens, cache_read_tokens, cache_write_tokens, duration_us
	FROM exchanges WHERE workspace_id = $1 AND session_id = $2 AND lane_id = $3 AND tokens_before > 0 AND at BETWEEN $4 AND $5 AND position BETWEEN $6 AND $7
	ORDER BY position, at DESC, id DESC LIMIT $8`

// Asked returns the requests of a lane with from to to messages that were sent around two times, by their number
// of messages.
func Asked(ctx context.Context, s Browser, workspace tenants.WorkspaceID, id, lane uuid.UUID, from, to int, since, until time.Time) ([]session.Asked, error) {
	var asked []session.Asked
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		asked, err = batchdb.Rows(tx, func(row pgx.CollectableRow) (one session.Asked, err error) {
			var took int64
			err = row.Scan(&one.ID, &one.Position, &one.At, &one.Status, &one.CostMicroUSD, &one.Input, &one.CacheRead, &one.CacheWrite, &took)
			one.Duration = time.Duration(took) * time.Microsecond
			return one, err
		}, sqlAsked, workspace, id, lane, since.Add(-askedMargin), until.Add(askedMargin), from, to, mostAsked)
		return err
	})
	return asked, batchdb.Wrapf(err, "requests of lane %s", lane)
}

// sqlNewestOf reads the newest request with $4 messages among a lane's newest requests, otherwise the newest.
const sqlNewestOf = `SELECT at, tokens_before, tokens_after, window_tokens, target_tokens, compression, class, level_0, level_1, level_2, level_3, projection, status
	FROM (SELECT id, position, at, tokens_before, tokens_after, window_tokens, target_tokens, compression, class, level_0, level_1, level_2, level_3, projection, status
		FROM exchanges WHERE workspace_id = $1 AND session_id = $2 AND lane_id = $3 AND tokens_before > 0
		ORDER BY at DESC, id DESC LIMIT 50) newest
	ORDER BY position = $4 DESC, at DESC, id DESC LIMIT 1`

// Newest returns the newest request of a lane with the given number of messages, without its request number.
// If none of the last requests has that many, it returns the newest one. It returns session.ErrNotFound for a
// lane without requests.
func (s Browser) Newest(ctx context.Context, workspace tenants.WorkspaceID, id, lane uuid.UUID, messages int) (session.TimelineEntry, error) {
	var m session.TimelineEntry
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		err := tx.Statement.ConnPool.QueryRowContext(ctx, sqlNewestOf, workspace, id, lane, messages).Scan(&m.At, &m.Before, &m.After, &m.Window, &m.Target,
			&m.Compression, &m.Class, &m.Levels[0], &m.Levels[1], &m.Levels[2], &m.Levels[3], &m.Projection, &m.Status)
		if errors.Is(err, sql.ErrNoRows) {
			return session.ErrNotFound
		}
		return err
	})
	return m, batchdb.Wrapf(err, "newest request of lane %s", lane)
}

// certificateOf returns the certificate of a projection as JSON for Postgres, or nil.
func certificateOf(projection *session.Projection) *string {
	if projection.Certificate == nil {
		return nil
	}
	encoded, err := json.Marshal(projection.Certificate)
	if err != nil {
		panic("sessiondb: a certificate as JSON: " + err.Error()) // texts and numbers can be encoded
	}
	text := string(encoded)
	return &text
}

// lostOf returns how many facts a projection has lost; nil without a comparison.
func lostOf(projection *session.Projection) *int {
	if projection.Certificate == nil {
		return nil
	}
	return new(projection.Certificate.Lost())
}

// levelTokens returns the tokens of a projection at L1, L2 and L3, as a Postgres array.
func levelTokens(projection *session.Projection) string {
	var sums [4]int
	for _, part := range projection.Parts {
		if part.Level > 0 && part.Level < len(sums) {
			sums[part.Level] += part.Tokens
		}
	}
	return fmt.Sprintf("{%d,%d,%d}", sums[1], sums[2], sums[3])
}
