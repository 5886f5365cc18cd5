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

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	sqlAnnounce = `SELECT announce_lanes($1, $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[],
		$8::text[], $9::text[], $10::text[], $11::uuid[], $12::uuid[], $13::int[], $14::int[], $15::int[], $16::text[], $17::bytea[],
		$18::int[], $19::timestamptz[])`
	sqlStands = `SELECT l.id, found.position, l.position,
			coalesce((SELECT max(number) FROM epochs WHERE workspace_id = $1 AND lane_id = l.id), 0),
			coalesce((SELECT max(number) FROM lane_inserts WHERE workspace_id = $1 AND lane_id = l.id), 0),
			l.warm_at, l.warm_seconds, l.warm_projection, l.warm_position, l.warm_tokens, l.warm_model,
			l.tried_at, l.fruitless, l.tried_reason, l.tried_tokens, l.tried_limit
		FROM (` + sqlHead + `) found JOIN lanes l ON l.workspace_id = $1 AND l.id = found.lane_id`
)

// Announce has all processes find lanes by the ends of requests that are not recorded yet.
// A server that fails may forget it again.
func (s *Store) Announce(ctx context.Context, workspace tenants.WorkspaceID, seen []session.Seen) error {
	var (
		sessions, keys, lanes, parents           []uuid.UUID
		formats, names, sources, upstreams, kind []string
		titles, clients, models                  []string
		forks, epochs, inserts, positions        []int
		heads                                    [][]byte
		times                                    []time.Time
	)
	for i := range seen {
		one := &seen[i]
		sessions, keys = append(sessions, one.Session), append(keys, one.Scope.APIKey)
		formats, names = append(formats, string(one.Scope.Format)), append(names, storable(one.Name))
		sources, upstreams = append(sources, storable(one.Source)), append(upstreams, storable(one.Scope.Upstream))
		titles, clients = append(titles, storable(one.Title)), append(clients, storable(one.Client))
		models = append(models, storable(one.Model))
		lanes, parents = append(lanes, one.Lane), append(parents, one.Parent)
		forks, epochs, inserts = append(forks, one.ForkAt), append(epochs, one.Inherited), append(inserts, one.Taken)
		kind = append(kind, string(cmp.Or(one.Kind, session.Main)))
		var head []byte
		if one.HasHead() {
			head = one.Head[:]
		}
		heads, positions, times = append(heads, head), append(positions, one.Position), append(times, one.At)
	}
	err := s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, sqlAnnounce, workspace, sessions, keys, formats, names, sources, upstreams,
			titles, clients, models, lanes, parents, forks, epochs, inserts, kind, heads, positions, times)
		return err
	})
	if err != nil {
		return fmt.Errorf("announce %d requests: %w", len(seen), orAway(err))
	}
	return nil
}

// Stands returns, of the lane with a head among heads that lies furthest along, what tells
// whether it has moved on. It returns session.ErrNotFound if no lane has one.
func (s *Store) Stands(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Standing, error) {
	var standing session.Standing
	err := s.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var warmAt, triedAt sql.NullTime
		var seconds int
		err := tx.Statement.ConnPool.QueryRowContext(ctx, sqlStands, workspace, newestFirst(heads)).Scan(
			&standing.Lane, &standing.Match, &standing.Tip, &standing.Projection, &standing.Insert,
			&warmAt, &seconds, &standing.Heat.Projection, &standing.Heat.Position, &standing.Heat.Tokens, &standing.Heat.Model,
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
