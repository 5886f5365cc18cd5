package sessiondb

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
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
		SELECT id, api_key_id, format, model, last_at FROM sessions WHERE workspace_id = $1 AND ($3 = '' OR client = $3) AND last_at >= $4 ORDER BY last_at DESC, id DESC LIMIT $2
	) s CROSS JOIN LATERAL (
		SELECT id, warm_seconds FROM lanes
		WHERE workspace_id = $1 AND session_id = s.id AND kind = 'main' ORDER BY position DESC, id LIMIT 1
	) l ORDER BY s.last_at DESC, s.id DESC`

const sqlCounted = `SELECT l.id, c.role, c.flags, c.tokens FROM unnest($2::uuid[]) AS l (id)
	CROSS JOIN LATERAL (SELECT index, role, flags, tokens FROM lane_entries($1, l.id) ORDER BY index LIMIT $3) c
	ORDER BY l.id, c.index`

// Token counting calls, and requests that never reached the provider, are no prompts.
const sqlSent = `SELECT l.lane, x.at, x.position, x.tokens_before, x.tokens_after, x.window_tokens, coalesce(nullif(x.takes_tokens, 0), x.window_tokens),
		x.compression IN ('epoch', 'truncated', 'emergency'), x.reach, x.net_microusd, x.cost_microusd, x.output_tokens
	FROM unnest($2::uuid[], $3::uuid[]) AS l (session, lane)
	CROSS JOIN LATERAL (
		SELECT at, id, position, tokens_before, tokens_after, window_tokens, takes_tokens, compression, reach, net_microusd, cost_microusd, output_tokens FROM exchanges e
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
	}, sqlRecorded, workspace, picked.Newest, picked.Client, picked.Since)
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
		if err := row.Scan(&lane, &one.At, &one.Position, &one.Before, &one.After, &one.Limit, &one.Takes, &one.IsEpoch, &one.Reach, &one.Net, &one.Cost, &one.Output); err != nil {
			return err
		}
		of[lane].Requests = append(of[lane].Requests, one)
		return nil
	}, sqlSent, workspace, sessions, lanes, mostSent)
	return batchdb.Wrapf(err, "requests")
}
