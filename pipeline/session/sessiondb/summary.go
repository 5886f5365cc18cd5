package sessiondb

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// SummaryChannel notifies all replicas of an accepted summary as "workspace/lane/covers".
const SummaryChannel = "palimpsest_summaries"

const (
	// A lane inherits the summaries of the messages that it shares with its parent.
	sqlSummaries = sqlDescent + `
		SELECT s.lane_id, s.covers, s.chain, s.sealed FROM line l JOIN summaries s ON s.workspace_id = $1 AND s.lane_id = l.id
		WHERE s.status = 'accepted' AND s.covers <= l.covers ORDER BY l.depth DESC, s.number`
	sqlSummary = `INSERT INTO summaries (workspace_id, lane_id, number, session_id, covers, chain, merged, status, reason, version,
			form, model, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, created_at, sealed)
		SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18
		FROM summaries WHERE workspace_id = $1 AND lane_id = $2`
	sqlTried  = `SELECT EXISTS (SELECT FROM summaries WHERE workspace_id = $1 AND lane_id = $2 AND covers >= $3)`
	sqlCharge = `UPDATE sessions SET net_microusd = net_microusd - $3, cost_microusd = cost_microusd + $3 WHERE workspace_id = $1 AND id = $2`
)

// Summaries returns the accepted summaries of a lane, oldest first, including inherited ones.
func (s *Store) Summaries(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Summary, error) {
	var found []session.Summary
	key, err := s.keys.Key(ctx, workspace)
	if err == nil {
		err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
			found, err = summaries(tx, key, workspace, lane)
			return err
		})
	}
	return found, batchdb.Wrapf(err, "summaries of lane %s", lane)
}

// SummaryTried reports whether an attempt to summarize that many messages of a lane, or more, is stored:
// accepted or rejected.
func (s *Store) SummaryTried(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, covers int) (tried bool, err error) {
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Statement.ConnPool.QueryRowContext(ctx, sqlTried, workspace, lane, covers).Scan(&tried)
	})
	return tried, batchdb.Wrapf(err, "attempts at a summary of lane %s", lane)
}

// SaveSummary keeps an attempt and adds its cost to its session. Both are durable when it returns. It
// notifies all replicas of an accepted summary. It returns session.ErrNotFound if the lane no longer exists.
func (s *Store) SaveSummary(ctx context.Context, workspace tenants.WorkspaceID, attempt session.SummaryAttempt) error {
	key, err := s.keys.Key(ctx, workspace)
	if err == nil {
		err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error { return saveSummary(tx, key, workspace, attempt) })
	}
	if isViolation(err, foreignKeyViolation) {
		err = session.ErrNotFound
	}
	return batchdb.Wrapf(err, "save summary of lane %s", attempt.Lane)
}

func summaries(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Summary, error) {
	var found []session.Summary
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var summary session.Summary
		var maker uuid.UUID
		var chain, sealed []byte
		if err := row.Scan(&maker, &summary.Covers, &chain, &sealed); err != nil {
			return err
		}
		if len(chain) != len(conversation.Hash{}) {
			return fmt.Errorf("%w: chain of %d bytes", errBroken, len(chain))
		}
		summary.Chain = conversation.Hash(chain)
		text, err := key.Open(aboutSummary(maker, summary.Covers, chain), sealed)
		if err != nil {
			return fmt.Errorf("summary of lane %s: %w", maker, err)
		}
		summary.Text = string(text)
		found = append(found, summary)
		return nil
	}, sqlSummaries, workspace, lane)
	return found, err
}

func saveSummary(tx *gorm.DB, key *archive.Key, workspace tenants.WorkspaceID, attempt session.SummaryAttempt) error {
	ctx, pool := tx.Statement.Context, tx.Statement.ConnPool
	status, usage := "rejected", attempt.Usage
	var sealed []byte
	if attempt.Reason == "" {
		status = "accepted"
		sealed = key.Seal(aboutSummary(attempt.Lane, attempt.Covers, attempt.Chain[:]), []byte(storable(attempt.Text)))
	}
	// The session's row is locked before the lane's, in the recorder's order, so that there are no deadlocks.
	if _, err := pool.ExecContext(ctx, sqlCharge, workspace, attempt.Session, attempt.CostMicroUSD); err != nil {
		return err
	}
	// The lock makes the numbers of a lane's attempts consecutive.
	if _, err := pool.ExecContext(ctx, sqlLockLane, workspace, attempt.Lane); err != nil {
		return err
	}
	_, err := pool.ExecContext(ctx, sqlSummary, workspace, attempt.Lane, attempt.Session, attempt.Covers, attempt.Chain[:], attempt.Merged,
		status, storable(attempt.Reason), attempt.Version, attempt.Form, storable(attempt.Model),
		usage.Input, usage.CacheRead, usage.CacheWrite, usage.Output, attempt.CostMicroUSD, attempt.At, sealed)
	if err != nil {
		return err
	}
	if status != "accepted" {
		return nil
	}
	message := fmt.Sprintf("%s/%s/%d", workspace, attempt.Lane, attempt.Covers)
	_, err = pool.ExecContext(ctx, sqlNotify, SummaryChannel, message)
	return err
}

const (
	sqlLockLane = `SELECT id FROM lanes WHERE workspace_id = $1 AND id = $2 FOR NO KEY UPDATE`

	// foreignKeyViolation is Postgres' code for a reference to a missing row.
	foreignKeyViolation = "23503"
)

func isViolation(err error, code string) bool {
	failure, is := errors.AsType[*pgconn.PgError](err)
	return is && failure.Code == code
}
