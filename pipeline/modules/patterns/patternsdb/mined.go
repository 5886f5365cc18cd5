package patternsdb

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/miner"
	"palimpsest/tenants"
)

const (
	sqlWorkspaces = `SELECT workspace_id FROM workspaces ORDER BY workspace_id`
	sqlDue        = `SELECT l.id, l.session_id, s.format, l.last_at
		FROM lanes l JOIN sessions s ON s.workspace_id = l.workspace_id AND s.id = l.session_id
			LEFT JOIN pattern_lanes r ON r.workspace_id = l.workspace_id AND r.lane_id = l.id
		WHERE l.workspace_id = $1 AND l.kind = 'main' AND l.last_at < $2 AND (r.last_at IS NULL OR r.last_at < l.last_at)
		ORDER BY l.last_at, l.id LIMIT $3`
	// Two readers of one workspace would each add what is alike.
	sqlAlone = `SELECT pg_advisory_xact_lock(hashtextextended('patterns/' || $1::text, 0))`
	sqlTexts = `SELECT id, kind, text FROM patterns WHERE workspace_id = $1 ORDER BY id`
	// A lane that was rewound or reads otherwise now no longer teaches what it did.
	sqlForget   = `DELETE FROM pattern_evidence WHERE workspace_id = $1 AND lane_id = $2`
	sqlEvidence = `INSERT INTO pattern_evidence (workspace_id, pattern_id, lane_id, message, session_id, hash, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
	sqlMet = `UPDATE patterns SET last_seen = greatest(last_seen, $3),
			needs_sessions = least(needs_sessions, $4), needs_messages = least(needs_messages, $5)
		WHERE workspace_id = $1 AND id = $2`
	sqlUse = `INSERT INTO pattern_uses (workspace_id, pattern_id, lane_id, outcome, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workspace_id, pattern_id, lane_id) DO UPDATE SET outcome = EXCLUDED.outcome, at = EXCLUDED.at`
	sqlUsed = `UPDATE patterns SET last_seen = greatest(last_seen, $3) WHERE workspace_id = $1 AND id = $2`
	sqlRead = `INSERT INTO pattern_lanes (workspace_id, lane_id, last_at) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, lane_id) DO UPDATE SET last_at = EXCLUDED.last_at`

	// What was learned from sessions that are deleted goes with them, unless someone
	// has decided to keep it.
	sqlOrphans = `DELETE FROM patterns p WHERE workspace_id = $1 AND source = 'mined' AND (status = 'seen' AND last_seen < $2
		OR status IN ('seen', 'candidate') AND NOT EXISTS (SELECT FROM pattern_evidence e WHERE e.workspace_id = $1 AND e.pattern_id = p.id))`
	sqlPromote = `UPDATE patterns p SET status = 'candidate', edited_at = $2 WHERE workspace_id = $1 AND status = 'seen'
		AND (SELECT count(DISTINCT session_id) FROM pattern_evidence e WHERE e.workspace_id = $1 AND e.pattern_id = p.id) >= needs_sessions
		AND (SELECT count(DISTINCT hash) FROM pattern_evidence e WHERE e.workspace_id = $1 AND e.pattern_id = p.id) >= needs_messages`
	sqlApprove = `UPDATE patterns p SET status = 'approved', reason = 'auto', version = version + 1, edited_at = $2
		WHERE workspace_id = $1 AND status = 'candidate'
		AND (SELECT count(DISTINCT session_id) FROM pattern_evidence e WHERE e.workspace_id = $1 AND e.pattern_id = p.id) >= $3
		AND (SELECT coalesce(avg((outcome = 'success')::int), 1) FROM pattern_uses u WHERE u.workspace_id = $1 AND u.pattern_id = p.id) >= $4`
	sqlDisable = `UPDATE patterns SET status = 'disabled', reason = 'not met for 180 days', version = version + 1, edited_at = $2
		WHERE workspace_id = $1 AND status IN ('candidate', 'approved') AND last_seen < $3`
)

// Workspaces implements miner.Store. It is the one query that no workspace asks.
func (s *Store) Workspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	var all []tenants.WorkspaceID
	err := s.runner.AsWorker(ctx, func(tx *gorm.DB) (err error) {
		all, err = batchdb.Rows(tx, pgx.RowTo[tenants.WorkspaceID], sqlWorkspaces)
		return err
	})
	return all, batchdb.Wrapf(err, "list workspaces")
}

// Due implements miner.Store.
func (s *Store) Due(ctx context.Context, workspace tenants.WorkspaceID, before time.Time, limit int) ([]miner.Lane, error) {
	var lanes []miner.Lane
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		lanes, err = batchdb.Rows(tx, func(row pgx.CollectableRow) (lane miner.Lane, err error) {
			err = row.Scan(&lane.ID, &lane.Session, &lane.Format, &lane.LastAt)
			return lane, err
		}, sqlDue, workspace, before, limit)
		return err
	})
	return lanes, batchdb.Wrapf(err, "lanes to read")
}

// Read implements miner.Store.
func (s *Store) Read(ctx context.Context, workspace tenants.WorkspaceID, lane miner.Lane, met []miner.Occurrence, uses []miner.Use) error {
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		pool := tx.Statement.ConnPool
		if _, err := pool.ExecContext(ctx, sqlAlone, workspace); err != nil {
			return err
		}
		if _, err := pool.ExecContext(ctx, sqlForget, workspace, lane.ID); err != nil {
			return err
		}
		if err := keep(tx, workspace, lane, met); err != nil {
			return err
		}
		for _, use := range uses {
			outcome := "failure"
			if use.Helped {
				outcome = "success"
			}
			if _, err := pool.ExecContext(ctx, sqlUse, workspace, use.Pattern.ID, lane.ID, outcome, lane.LastAt); err != nil {
				return err
			}
			if _, err := pool.ExecContext(ctx, sqlUsed, workspace, use.Pattern.ID, lane.LastAt); err != nil {
				return err
			}
		}
		if _, err := pool.ExecContext(ctx, sqlRead, workspace, lane.ID, lane.LastAt); err != nil || len(met)+len(uses) == 0 {
			return err
		}
		return notify(tx, workspace)
	})
	return batchdb.Wrapf(err, "keep what lane %s teaches", lane.ID)
}

// known is a pattern that a finding may be alike to.
type known struct {
	id   uuid.UUID
	kind patterns.Kind
	text string
}

// keep keeps findings as evidence of the patterns that they are alike to, and makes
// patterns of the others.
func keep(tx *gorm.DB, workspace tenants.WorkspaceID, lane miner.Lane, met []miner.Occurrence) error {
	if len(met) == 0 {
		return nil
	}
	all, err := texts(tx, workspace)
	if err != nil {
		return err
	}
	for i := range met {
		one := &met[i]
		at := slices.IndexFunc(all, func(k known) bool {
			return k.kind == one.Kind && (wordsOf(k.text) == wordsOf(one.Text) || patterns.IsAlike(k.text, one.Text))
		})
		if at < 0 {
			p := patterns.Pattern{
				ID: uuid.Must(uuid.NewV7()), Workspace: workspace, Kind: one.Kind, Text: one.Text, When: one.When,
				Status: patterns.Seen, Source: patterns.Mined,
			}
			added, err := add(tx, &p, one.Sessions, one.Messages, one.At)
			if errors.Is(err, patterns.ErrFull) || err == nil && !added {
				continue
			}
			if err != nil {
				return err
			}
			all, at = append(all, known{p.ID, p.Kind, p.Text}), len(all)
		}
		if err := note(tx, workspace, lane, all[at].id, one); err != nil {
			return err
		}
	}
	return nil
}

// note keeps a finding as evidence of a pattern.
func note(tx *gorm.DB, workspace tenants.WorkspaceID, lane miner.Lane, pattern uuid.UUID, met *miner.Occurrence) error {
	ctx, pool := tx.Statement.Context, tx.Statement.ConnPool
	_, err := pool.ExecContext(ctx, sqlEvidence, workspace, pattern, lane.ID, met.Message, lane.Session, met.Hash[:], met.At)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, sqlMet, workspace, pattern, met.At, met.Sessions, met.Messages)
	return err
}

// texts returns the patterns of a workspace, whatever became of them.
func texts(tx *gorm.DB, workspace tenants.WorkspaceID) ([]known, error) {
	return batchdb.Rows(tx, func(row pgx.CollectableRow) (one known, err error) {
		err = row.Scan(&one.id, &one.kind, &one.text)
		return one, err
	}, sqlTexts, workspace)
}

// Finalize implements miner.Store.
func (s *Store) Finalize(ctx context.Context, workspace tenants.WorkspaceID, now time.Time, auto bool, minRate float64) (miner.Changes, error) {
	var settled miner.Changes
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		run := func(count *int, statement string, values ...any) error {
			result, err := tx.Statement.ConnPool.ExecContext(ctx, statement, values...)
			if err != nil {
				return err
			}
			changed, err := result.RowsAffected()
			*count = int(changed)
			return err
		}
		var gone int
		if err := run(&gone, sqlOrphans, workspace, now.Add(-patterns.GoneAfter)); err != nil {
			return err
		}
		if err := run(&settled.Forged, sqlPromote, workspace, now); err != nil {
			return err
		}
		if err := run(&settled.Disabled, sqlDisable, workspace, now, now.Add(-patterns.GoneAfter)); err != nil {
			return err
		}
		if auto {
			if err := run(&settled.Approved, sqlApprove, workspace, now, patterns.AutoSessions, minRate); err != nil {
				return err
			}
		}
		if settled.Approved+settled.Disabled == 0 {
			return nil
		}
		return notify(tx, workspace)
	})
	return settled, batchdb.Wrapf(err, "settle patterns of workspace %s", workspace)
}

// isTaken reports whether an error says that a pattern with the same words is there.
func isTaken(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == "23505" && failure.TableName == "patterns"
}
