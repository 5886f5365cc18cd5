package sessiondb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
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
			head = one.Head[:]
		}
		heads, positions, times = append(heads, head), append(positions, one.Position), append(times, one.At)
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
