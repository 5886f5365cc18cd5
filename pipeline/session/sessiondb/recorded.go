package sessiondb

import (
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

const (
	// mostCounted bounds the messages, and mostSent the requests, that are read of a lane. Only the beginning
	// of a longer conversation counts.
	mostCounted, mostSent = 10_000, 2_000
)

// A session's conversation is its longest main lane.
const sqlRecorded = `SELECT s.id, l.id, s.api_key_id, s.format, s.model, l.warm_seconds FROM (
		SELECT id, api_key_id, format, model, last_at FROM sessions WHERE workspace_id = $1 AND ($3 = '' OR client = $3) AND last_at >= $4
			AND ($5::uuid[] IS NULL OR api_key_id = ANY($5)) ORDER BY last_at DESC, id DESC LIMIT $2
	) s CROSS JOIN LATERAL (
		SELECT id, warm_seconds FROM lanes
		WHERE workspace_id = $1 AND session_id = s.id AND kind = 'main' ORDER BY position DESC, id LIMIT 1
	) l ORDER BY s.last_at DESC, s.id DESC`

const sqlCounted = `SELECT l.id, c.role, c.flags, c.tokens FROM unnest($2::uuid[]) AS l (id)
	CROSS JOIN LATERAL (SELECT index, role, flags, tokens FROM lane_entries($1, l.id) ORDER BY index LIMIT $3) c
	ORDER BY l.id, c.index`

// Token counting calls, and requests that never reached the provider, are no prompts.
const sqlSent = `SELECT l.lane, x.at, x.position, x.tokens_before, x.tokens_after, x.window_tokens, coalesce(nullif(x.takes_tokens, 0), x.window_tokens),
		x.compression IN ('epoch', 'truncated', 'emergency'), x.miss_cause = $5, x.reach, x.net_microusd, x.cost_microusd, x.output_tokens, x.projection
	FROM unnest($2::uuid[], $3::uuid[]) AS l (session, lane)
	CROSS JOIN LATERAL (
		SELECT at, id, position, tokens_before, tokens_after, window_tokens, takes_tokens, compression, miss_cause, reach, net_microusd, cost_microusd, output_tokens, projection FROM exchanges e
		WHERE e.workspace_id = $1 AND e.session_id = l.session AND e.lane_id = l.lane AND e.attempts > 0
			AND e.endpoint IN ('/v1/messages', '/v1/chat/completions', '/v1/responses') AND e.class <> 'summary'
		ORDER BY at, id LIMIT $4
	) x ORDER BY l.lane, x.at, x.id`

// Recorded returns the main conversations of a workspace's picked sessions with their token counts, newest
// first. It omits sessions without stored messages.
func (s Browser) Recorded(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection) ([]session.Recorded, error) {
	var recorded []session.Recorded
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var err error
		if recorded, err = recordedLanes(tx, workspace, picked); err != nil || len(recorded) == 0 {
			return err
		}
		lanes, ids, of := make([]uuid.UUID, len(recorded)), make([]uuid.UUID, len(recorded)), map[uuid.UUID]*session.Recorded{}
		for i := range recorded {
			lanes[i], ids[i] = recorded[i].Lane, recorded[i].Session
			of[recorded[i].Lane] = &recorded[i]
		}
		if err := counted(tx, workspace, lanes, of); err != nil {
			return err
		}
		return sent(tx, workspace, ids, lanes, of)
	})
	return recorded, batchdb.Wrapf(err, "recorded sessions of workspace %s", workspace)
}

func recordedLanes(tx *gorm.DB, workspace tenants.WorkspaceID, picked session.Selection) ([]session.Recorded, error) {
	recorded, err := batchdb.Rows(tx, func(row pgx.CollectableRow) (one session.Recorded, err error) {
		var seconds int
		if err := row.Scan(&one.Session, &one.Lane, &one.APIKey, &one.Format, &one.Model, &seconds); err != nil {
			return one, err
		}
		one.TTL = time.Duration(seconds) * time.Second
		return one, nil
	}, sqlRecorded, workspace, picked.Newest, picked.Client, picked.Since, tenants.VisibleIn(tx.Statement.Context).IDs())
	return recorded, batchdb.Wrapf(err, "lanes")
}

// counted adds their messages to lanes.
func counted(tx *gorm.DB, workspace tenants.WorkspaceID, lanes []uuid.UUID, of map[uuid.UUID]*session.Recorded) error {
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var lane uuid.UUID
		var role string
		var flags, tokens int
		if err := row.Scan(&lane, &role, &flags, &tokens); err != nil {
			return err
		}
		of[lane].Messages = append(of[lane].Messages, session.Counted{
			Role: conversation.Role(role), Flags: conversation.Flags(flags), Tokens: tokens, //nolint:gosec // 16 bits were stored
		})
		return nil
	}, sqlCounted, workspace, lanes, mostCounted)
	return batchdb.Wrapf(err, "messages")
}

// sent adds their requests to lanes.
func sent(tx *gorm.DB, workspace tenants.WorkspaceID, sessions, lanes []uuid.UUID, of map[uuid.UUID]*session.Recorded) error {
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var lane uuid.UUID
		var one session.Sent
		if err := row.Scan(&lane, &one.At, &one.Position, &one.Before, &one.After, &one.Limit, &one.Takes, &one.IsEpoch, &one.Rewrote, &one.Reach, &one.Net, &one.Cost, &one.Output, &one.Projection); err != nil {
			return err
		}
		of[lane].Requests = append(of[lane].Requests, one)
		return nil
	}, sqlSent, workspace, sessions, lanes, mostSent, string(cost.PrefixChangeOurs))
	return batchdb.Wrapf(err, "requests")
}

const (
	// The ends of requests of a lane in the range of an exchange's messages, the other lane with the end that
	// the exchange continues, and, if the lane has a later end, the messages in the places of the exchange's
	// own.
	sqlStrays = `SELECT 'end', t.place, h.lane_id, h.position, h.head
		FROM unnest($2::int[], $3::uuid[], $4::int[], $5::int[]) AS t (place, lane, low, high)
		CROSS JOIN LATERAL (
			SELECT lane_id, position, head FROM lane_heads
			WHERE workspace_id = $1 AND lane_id = t.lane AND position > t.low AND position <= t.high OFFSET 0
		) h
		UNION ALL
		SELECT 'base', t.place, h.lane_id, 0, h.head
		FROM unnest($2::int[], $3::uuid[], $6::bytea[]) AS t (place, lane, base)
		CROSS JOIN LATERAL (SELECT lane_id, head FROM lane_heads WHERE workspace_id = $1 AND head = t.base LIMIT 1) h
		WHERE h.lane_id <> t.lane
		UNION ALL
		SELECT 'message', t.place, t.lane, e.index, e.hash
		FROM unnest($2::int[], $3::uuid[], $4::int[], $5::int[]) AS t (place, lane, low, high)
		CROSS JOIN LATERAL (SELECT 1 FROM lane_heads WHERE workspace_id = $1 AND lane_id = t.lane AND position > t.high LIMIT 1) further
		CROSS JOIN LATERAL (
			SELECT index, hash FROM archive_entries WHERE workspace_id = $1 AND lane_id = t.lane AND index >= t.low AND index < t.high OFFSET 0
		) e`
	sqlLeft = sqlDescent + `SELECT parent_id, fork_at, fork_epoch, fork_insert FROM lanes
		WHERE workspace_id = $1 AND id = $2 AND EXISTS (SELECT FROM line WHERE id = $3)`
	// The numbers that a fork inherits. Its shared messages belong to the lane that it leaves, or come after
	// the ones that lane inherited.
	sqlShared = `SELECT
			greatest(l.fork_epoch, (SELECT max(number) FROM epochs WHERE workspace_id = $1 AND lane_id = l.id AND covers <= $3)),
			greatest(l.fork_insert, (SELECT max(number) FROM lane_inserts WHERE workspace_id = $1 AND lane_id = l.id AND message < $3))
		FROM lanes l WHERE l.workspace_id = $1 AND l.id = $2`
	// mostLeft bounds how many lanes an exchange is moved along.
	mostLeft = 16
)

// stray is the stored state of an exchange's lane.
type stray struct {
	base   uuid.UUID // another lane with the end that the exchange continues, or uuid.Nil
	leaves bool      // the lane has an end that is not on the exchange's history
	shared int       // messages known to be shared by the lane and that history
	other  int       // messages up to the last difference; 0 without one
}

// left reports whether the exchange does not continue its lane. A shared end takes precedence over different
// messages, because messages may differ in irrelevant bytes such as a cache marker.
func (s stray) left() bool { return s.leaves || s.other > s.shared }

// leaveStrays moves exchanges, in place, that do not continue their lane, because a client went back and
// edited a message and another process has recorded the other version. Such an exchange belongs to a fork of
// the lane, and so do those that continue it. The caller holds the rows of their sessions, so that one of two
// processes sees the other's record.
func leaveStrays(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	found, err := findStrays(tx, workspace, updates)
	if err != nil {
		return err
	}
	moved := make(map[conversation.Hash]session.Update) // by the ends of their requests
	for i := range updates {
		one, was := &updates[i], updates[i].Lane
		if before, ok := moved[one.Base()]; ok && (before.Parent == was || before.Lane == was) {
			one.MoveTo(before.Lane, before.Ancestry)
		} else if found[i].left() || found[i].base != uuid.Nil {
			if err := leave(tx, workspace, one); err != nil {
				return err
			}
		}
		if one.Lane == was {
			continue
		}
		if one.HasHead() {
			moved[one.Messages.Head] = *one
		}
		if err := notify(tx, workspace, was, 0); err != nil { // processes that remember it find the fork
			return err
		}
	}
	return nil
}

// leave moves an exchange to the lane that it continues, or to a new fork.
func leave(tx *gorm.DB, workspace tenants.WorkspaceID, one *session.Update) error {
	for range mostLeft {
		found, err := findStrays(tx, workspace, []session.Update{*one})
		if err != nil {
			return err
		}
		if other := found[0].base; other != uuid.Nil {
			follows, err := follow(tx, workspace, one, other)
			if err != nil {
				return err
			}
			if follows {
				continue
			}
		}
		if !found[0].left() {
			return nil
		}
		var inherited, taken int
		row := tx.Statement.ConnPool.QueryRowContext(tx.Statement.Context, sqlShared, workspace, one.Lane, one.First())
		if err := row.Scan(&inherited, &taken); err != nil {
			return fmt.Errorf("what a fork of lane %s takes over: %w", one.Lane, err)
		}
		one.Fork(inherited, taken)
	}
	return nil
}

// follow moves an exchange to another lane if that one is a fork of the exchange's.
func follow(tx *gorm.DB, workspace tenants.WorkspaceID, one *session.Update, other uuid.UUID) (bool, error) {
	var parent uuid.NullUUID
	var forkAt, inherited, taken int
	row := tx.Statement.ConnPool.QueryRowContext(tx.Statement.Context, sqlLeft, workspace, other, one.Lane)
	err := row.Scan(&parent, &forkAt, &inherited, &taken)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("forks of lane %s: %w", one.Lane, err)
	}
	one.MoveTo(other, session.Ancestry{Parent: parent.UUID, ForkAt: forkAt, Inherited: inherited, Taken: taken})
	return true, nil
}

// findStrays returns the stored state of the exchanges' lanes, by index.
func findStrays(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) (map[int]stray, error) {
	found := make(map[int]stray)
	var places, lows, highs []int
	var lanes []uuid.UUID
	var bases [][]byte
	for i := range updates {
		one := &updates[i]
		if !one.HasHead() {
			continue
		}
		var base []byte
		if one.Parent == uuid.Nil || one.First() > one.ForkAt { // otherwise the end belongs to its parent
			hash := one.Base()
			base = hash[:]
		}
		high := one.Messages.Position
		if len(one.Messages.Links) == 0 {
			high = one.First() // there are no entries to compare
		}
		places, lanes, lows, highs, bases = append(places, i), append(lanes, one.Lane), append(lows, one.First()), append(highs, high), append(bases, base)
	}
	if len(places) == 0 {
		return found, nil
	}
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var kind string
		var place, position int
		var lane uuid.UUID
		var hash []byte
		if err := row.Scan(&kind, &place, &lane, &position, &hash); err != nil {
			return err
		}
		found[place] = found[place].with(kind, &updates[place], lane, position, conversation.Hash(hash))
		return nil
	}, sqlStrays, workspace, places, lanes, lows, highs, bases)
	return found, batchdb.Wrapf(err, "look at the lanes")
}

// with returns the stray with a row that was found for an exchange.
func (s stray) with(kind string, one *session.Update, lane uuid.UUID, position int, hash conversation.Hash) stray {
	switch place := position - one.First(); {
	case kind == "base":
		s.base = lane
	case kind == "end" && hash == one.Messages.Links[place]:
		s.shared = max(s.shared, position)
	case kind == "end":
		s.leaves = true
	case hash != one.Messages.Entries[place].Hash:
		s.other = max(s.other, position+1)
	}
	return s
}
