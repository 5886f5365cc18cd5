package sessiondb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// The statements of an announcement: the parts of a record by which lanes are found, in the recorder's order,
// so that there are no deadlocks. The function announce_lanes is for older versions.
//
// Existing rows are skipped by a look-up for each row and not by ON CONFLICT DO NOTHING, which would wait for
// a recorder that is writing the row. Announcements of a lane that has joined another one go to that lane.
const (
	sqlHurry            = `SELECT set_config('synchronous_commit', 'off', true)`
	sqlAnnounceSessions = `INSERT INTO sessions (workspace_id, id, api_key_id, format, name, source, upstream, title, client, model, started_at, last_at, end_user, project, cost_microusd)
		SELECT DISTINCT ON (id) $1, id, key, format, name, source, upstream, title, client, model, at, at, end_user, project, 0
		FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
			$11::timestamptz[], $12::uuid[], $13::text[], $14::text[]) AS t (id, key, format, name, source, upstream, title, client, model, at, lane, end_user, project)
		WHERE (SELECT s.id FROM sessions s WHERE s.workspace_id = $1 AND s.id = t.id) IS NULL
			AND (SELECT j.lane_id FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = t.lane) IS NULL
			AND (SELECT u.id FROM end_users u WHERE u.workspace_id = $1 AND u.id = t.end_user AND u.erased_at >= t.at) IS NULL
		ORDER BY id, at
		ON CONFLICT DO NOTHING`
	sqlAnnounceLanes = `INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, fork_epoch, fork_insert, kind, position, created_at, last_at)
		SELECT DISTINCT ON (id) $1, id, session, nullif(parent, '00000000-0000-0000-0000-000000000000'), fork, epoch, insert, kind, position, at, at
		FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::int[], $6::int[], $7::int[], $8::text[], $9::int[], $10::timestamptz[])
			AS t (id, session, parent, fork, epoch, insert, kind, position, at)
		WHERE (SELECT l.id FROM lanes l WHERE l.workspace_id = $1 AND l.id = t.id) IS NULL
			AND (SELECT j.lane_id FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = t.id) IS NULL
			AND (SELECT s.id FROM sessions s WHERE s.workspace_id = $1 AND s.id = t.session) IS NOT NULL
		ORDER BY id, at
		ON CONFLICT DO NOTHING`
	// The end of a request that has left its lane at another process does not belong to the lane, because its
	// recorder stores it in a fork. OFFSET 0 has the planner take t.lane as is, since under row-level
	// security it would read all lanes of the workspace for a subquery.
	sqlAnnounceHeads = `INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at)
		SELECT DISTINCT ON (head) $1, head, lane, position, at
		FROM (
			SELECT head, coalesce((SELECT into_id FROM joined_lanes j WHERE j.workspace_id = $1 AND j.lane_id = a.lane), lane) AS lane, position, at
			FROM unnest($2::bytea[], $3::uuid[], $4::int[], $5::timestamptz[]) AS a (head, lane, position, at)
			WHERE head IS NOT NULL OFFSET 0
		) AS t
		WHERE (SELECT l.id FROM lanes l WHERE l.workspace_id = $1 AND l.id = t.lane) IS NOT NULL AND (
			SELECT o.lane_id FROM lane_heads o
			WHERE o.workspace_id = $1 AND o.lane_id = t.lane AND o.position >= t.position AND o.head <> t.head LIMIT 1
		) IS NULL
		ORDER BY head, at DESC
		ON CONFLICT (workspace_id, head) DO UPDATE SET lane_id = excluded.lane_id, seen_at = excluded.seen_at
			WHERE excluded.seen_at > lane_heads.seen_at`
)

const (
	sqlStands = `SELECT l.id, found.position, l.position,
			coalesce((SELECT max(number) FROM epochs WHERE workspace_id = $1 AND lane_id = l.id), 0),
			coalesce((SELECT max(number) FROM lane_inserts WHERE workspace_id = $1 AND lane_id = l.id), 0),
			l.warm_at, l.warm_seconds, l.warm_projection, l.warm_position, l.warm_tokens, l.warm_model, l.warm_key,
			l.tried_at, l.fruitless, l.tried_reason, l.tried_tokens, l.tried_limit
		FROM (` + sqlHead + `) found JOIN lanes l ON l.workspace_id = $1 AND l.id = found.lane_id`
)

// Announce lets all processes find lanes by the ends of requests that are not recorded yet. A failing server
// may lose it.
func (s *Store) Announce(ctx context.Context, workspace tenants.WorkspaceID, updates []session.Update) error {
	var (
		sessions, keys, lanes, parents           []uuid.UUID
		formats, names, sources, upstreams, kind []string
		titles, clients, models, users, projects []string
		forks, epochs, inserts, positions        []int
		heads                                    [][]byte
		times                                    []time.Time
	)
	for i := range updates {
		one := &updates[i]
		sessions, keys = append(sessions, one.Session), append(keys, one.Scope.APIKey)
		formats, names = append(formats, string(one.Scope.Format)), append(names, storable(one.Name))
		sources, upstreams = append(sources, storable(one.Source)), append(upstreams, storable(one.Scope.Upstream))
		titles, clients = append(titles, storable(one.Title)), append(clients, storable(one.Client))
		models = append(models, storable(one.Model))
		users, projects = append(users, one.Scope.EndUser), append(projects, storable(one.Scope.Project))
		lanes, parents = append(lanes, one.Lane), append(parents, one.Parent)
		forks, epochs, inserts = append(forks, one.ForkAt), append(epochs, one.Inherited), append(inserts, one.Taken)
		kind = append(kind, string(cmp.Or(one.Kind, session.Main)))
		var head []byte
		if one.HasHead() {
			head = one.Messages.Head[:]
		}
		heads, positions, times = append(heads, head), append(positions, one.Messages.Position), append(times, one.At)
	}
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return errors.Join(
			batchdb.Later(tx, sqlHurry),
			shareUsers(tx, workspace, usersOf(updates)),
			batchdb.Later(tx, sqlAnnounceSessions, workspace, sessions, keys, formats, names, sources, upstreams, titles, clients, models, times, lanes, users, projects),
			batchdb.Later(tx, sqlAnnounceLanes, workspace, lanes, sessions, parents, forks, epochs, inserts, kind, positions, times),
			batchdb.Later(tx, sqlAnnounceHeads, workspace, heads, lanes, positions, times),
		)
	})
	if err != nil {
		return fmt.Errorf("announce %d requests: %w", len(updates), orAway(err))
	}
	return nil
}

// Stands returns the Standing of the lane with the furthest of the given heads, which shows whether the lane
// has moved on. It returns session.ErrNotFound if no lane has one.
func (s *Store) Stands(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Standing, error) {
	var standing session.Standing
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var warmAt, triedAt sql.NullTime
		var seconds int
		err := tx.Statement.ConnPool.QueryRowContext(ctx, sqlStands, workspace, newestFirst(heads)).Scan(
			&standing.Lane, &standing.Match, &standing.Tip, &standing.Projection, &standing.Insert,
			&warmAt, &seconds, &standing.Heat.Projection, &standing.Heat.Position, &standing.Heat.Tokens, &standing.Heat.Model, &standing.Heat.Key,
			&triedAt, &standing.Attempts.Fruitless, &standing.Attempts.Reason, &standing.Attempts.Size, &standing.Attempts.Limit)
		if errors.Is(err, sql.ErrNoRows) {
			return session.ErrNotFound
		}
		standing.Heat.At, standing.Heat.TTL = warmAt.Time, time.Duration(seconds)*time.Second
		standing.Attempts.At = triedAt.Time
		return err
	})
	if err != nil {
		return session.Standing{}, fmt.Errorf("look for lane: %w", orAway(err))
	}
	return standing, nil
}

// orAway wraps an error in a session.ErrAway if the database does not answer or accepts no writes now.
func orAway(err error) error {
	if !batchdb.IsAway(err) {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrAway, err)
}

// Each query returns how many sessions a notice is about, and the most urgent one.
const (
	// An active session may still earn back the cost of its only epoch, or of inserts without an epoch.
	sqlLosses = `SELECT count(*) OVER (), id, title, (sum(net_microusd) OVER ())::bigint, epochs
		FROM sessions WHERE workspace_id = $1 AND last_at >= $2 AND net_microusd < 0
			AND (epochs > 1 OR last_at < $4) AND ($3::uuid[] IS NULL OR api_key_id = ANY($3))
		ORDER BY net_microusd, id LIMIT 1`
	sqlTruncated = `SELECT count(*) OVER (), s.id, s.title, 0::bigint, 0
		FROM (SELECT session_id, max(at) AS at FROM exchanges
			WHERE workspace_id = $1 AND at >= $2 AND compression = 'truncated' GROUP BY session_id) e
		JOIN sessions s ON s.workspace_id = $1 AND s.id = e.session_id AND ($3::uuid[] IS NULL OR s.api_key_id = ANY($3))
		ORDER BY e.at DESC, s.id LIMIT 1`
	sqlLost = `SELECT count(*) OVER (), s.id, s.title, 0::bigint, e.lost
		FROM (SELECT l.session_id, max(o.created_at) AS at, sum(o.lost)::integer AS lost
			FROM epochs o JOIN lanes l ON l.workspace_id = $1 AND l.id = o.lane_id
			WHERE o.workspace_id = $1 AND o.created_at >= $2 AND o.lost > 0 GROUP BY l.session_id) e
		JOIN sessions s ON s.workspace_id = $1 AND s.id = e.session_id AND ($3::uuid[] IS NULL OR s.api_key_id = ANY($3))
		ORDER BY e.at DESC, s.id LIMIT 1`
	// Many compactions of a session are fine while they save money. Lanes and epochs are looked up session by
	// session, because few of a workspace's sessions have an epoch and were active recently, and a plain join
	// would read all its lanes.
	sqlMany = `SELECT count(*) OVER (), s.id, s.title, 0::bigint, made.epochs
		FROM sessions s CROSS JOIN LATERAL (
			SELECT max(o.number) AS epochs FROM lanes l JOIN epochs o ON o.workspace_id = $1 AND o.lane_id = l.id
			WHERE l.workspace_id = $1 AND l.session_id = s.id
		) made
		WHERE s.workspace_id = $1 AND s.last_at >= $2 AND s.epochs > 0 AND s.net_microusd <= 0 AND made.epochs >= $4
			AND ($3::uuid[] IS NULL OR s.api_key_id = ANY($3))
		ORDER BY made.epochs DESC, s.id LIMIT 1`
)

// rest is the time without a request after which a session counts as ended.
const rest = time.Hour

// Notices returns problems among the sessions that the reader may see and that were active since a moment before now. It includes lanes
// with that many epochs or more unless epochs is 0.
func (s Browser) Notices(ctx context.Context, workspace tenants.WorkspaceID, since, now time.Time, epochs int) ([]cost.Notice, error) {
	var notices []cost.Notice
	seen := tenants.VisibleIn(ctx).IDs()
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		ask := func(kind, query string, arguments ...any) error {
			return batchdb.Each(tx, func(row pgx.CollectableRow) error {
				notice := cost.Notice{Kind: kind}
				if err := row.Scan(&notice.Sessions, &notice.Session, &notice.Title, &notice.Net, &notice.Epochs); err != nil {
					return err
				}
				notices = append(notices, notice)
				return nil
			}, query, append([]any{workspace, since, seen}, arguments...)...)
		}
		if err := ask(cost.NoticeLoss, sqlLosses, now.Add(-rest)); err != nil {
			return err
		}
		if err := ask(cost.NoticeTruncated, sqlTruncated); err != nil {
			return err
		}
		if err := ask(cost.NoticeIncomplete, sqlLost); err != nil || epochs == 0 {
			return err
		}
		return ask(cost.NoticeEpochs, sqlMany, epochs)
	})
	return notices, batchdb.Wrapf(err, "notices of workspace %s", workspace)
}

const sqlModels = `SELECT model, count(*) FROM sessions WHERE workspace_id = $1 AND last_at >= $2 AND model <> ''
	AND ($4::uuid[] IS NULL OR api_key_id = ANY($4)) GROUP BY model ORDER BY 2 DESC, 1 LIMIT $3`

// mostModels bounds how many models are counted separately.
const mostModels = 1000

// Models returns, for each model as named by requests, how many sessions that the reader may see and that were
// active since a time used it last.
func Models(ctx context.Context, s Browser, workspace tenants.WorkspaceID, since time.Time) (map[string]int, error) {
	used := map[string]int{}
	err := batchdb.ForEach(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) error {
		var name string
		var sessions int
		if err := row.Scan(&name, &sessions); err != nil {
			return err
		}
		used[name] = sessions
		return nil
	}, sqlModels, workspace, since, mostModels, tenants.VisibleIn(ctx).IDs())
	return used, batchdb.Wrapf(err, "models of workspace %s", workspace)
}
