package sessiondb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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
		found, err = batchdb.Read(ctx, batchdb.Of(s.runner, workspace), func(tx *gorm.DB) ([]session.Summary, error) { return summaries(tx, key, workspace, lane) })
	}
	return found, batchdb.Wrapf(err, "summaries of lane %s", lane)
}

// SummaryTried reports whether an attempt to summarize that many messages of a lane, or more, is stored:
// accepted or rejected.
func (s *Store) SummaryTried(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, covers int) (tried bool, err error) {
	err = batchdb.Row(ctx, batchdb.Of(s.runner, workspace), sql.ErrNoRows, []any{&tried}, sqlTried, workspace, lane, covers)
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

const (
	sqlOfVisible = ` AND ($3::uuid[] IS NULL OR EXISTS (SELECT FROM lanes l JOIN sessions s ON s.workspace_id = $1 AND s.id = l.session_id
		WHERE l.workspace_id = $1 AND l.id = m.lane_id AND s.api_key_id = ANY($3)))`
	sqlMadeInserts   = "SELECT module, count(*) FROM lane_inserts m WHERE workspace_id = $1 AND put_at >= $2" + sqlOfVisible + " GROUP BY module"
	sqlMadeSummaries = "SELECT status, count(*) FROM summaries m WHERE workspace_id = $1 AND created_at >= $2" + sqlOfVisible + " GROUP BY status"
)

// Made counts the inserts and summaries since a moment, of the sessions that the reader may see.
func (s Browser) Made(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (session.Made, error) {
	made := session.Made{Inserts: map[string]int64{}}
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		seen := tenants.VisibleIn(ctx).IDs()
		if err := counts(tx, made.Inserts, sqlMadeInserts, workspace, since, seen); err != nil {
			return err
		}
		summaries := map[string]int64{}
		err := counts(tx, summaries, sqlMadeSummaries, workspace, since, seen)
		made.Rejected = summaries["rejected"]
		made.Summaries = summaries["accepted"] + made.Rejected
		return err
	})
	return made, batchdb.Wrapf(err, "what modules made in workspace %s", workspace)
}

// counts reads rows of a name and a count.
func counts(tx *gorm.DB, into map[string]int64, query string, arguments ...any) error {
	return batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var name string
		var count int64
		if err := row.Scan(&name, &count); err != nil {
			return err
		}
		into[name] = count
		return nil
	}, query, arguments...)
}

// sealedFormat is the first byte of a sealed projection or plan.
const sealedFormat = 1

// storedProjection is a projection stored with its lane.
type storedProjection struct {
	lane   uuid.UUID
	number int
	packed []byte
}

func projectionsOf(tx *gorm.DB, statement string, workspace tenants.WorkspaceID, lane uuid.UUID) ([]storedProjection, error) {
	return batchdb.Rows(tx, func(row pgx.CollectableRow) (one storedProjection, err error) {
		err = row.Scan(&one.lane, &one.number, &one.packed)
		return one, err
	}, statement, workspace, lane)
}

// sealPacked seals a packed projection.
func sealPacked(key *archive.Key, about, packed []byte) []byte {
	return append([]byte{sealedFormat}, key.Seal(about, packed)...)
}

// open returns the projection that was stored.
func (c *core) open(key *archive.Key, stored storedProjection) (session.Projection, error) {
	return c.openPacked(key, aboutProjection(stored.lane, stored.number), stored.packed)
}

// openPacked is open for a projection that belongs to no epoch yet.
func (c *core) openPacked(key *archive.Key, about, packed []byte) (session.Projection, error) {
	if len(packed) == 0 || packed[0] != sealedFormat {
		return session.Projection{}, fmt.Errorf("%w: its format is unknown", errBroken)
	}
	packed, err := key.Open(about, packed[1:])
	if err != nil {
		return session.Projection{}, fmt.Errorf("%w: %w", errBroken, err)
	}
	return c.packer.unpack(packed)
}

// aboutProjection is the associated data of a sealed projection, besides its workspace.
func aboutProjection(lane uuid.UUID, number int) []byte {
	about := append([]byte("projection "), lane[:]...)
	return binary.BigEndian.AppendUint64(about, uint64(number)) //nolint:gosec // epochs of a lane
}

// aboutSummary is the associated data of a sealed summary, besides its workspace.
func aboutSummary(lane uuid.UUID, covers int, chain []byte) []byte {
	about := append([]byte("summary "), lane[:]...)
	about = binary.BigEndian.AppendUint64(about, uint64(covers)) //nolint:gosec // messages of a lane
	return append(about, chain...)
}

// aboutPlan is the associated data of a sealed plan, besides its workspace.
func aboutPlan(lane uuid.UUID, settings []byte) []byte {
	return append(append([]byte("plan "), lane[:]...), settings...)
}

// aboutInsert is the associated data of a sealed insert, besides its workspace.
func aboutInsert(lane uuid.UUID, number int) []byte {
	about := append([]byte("insert "), lane[:]...)
	return binary.BigEndian.AppendUint64(about, uint64(number)) //nolint:gosec // inserts of a lane
}

// sealInsert seals an insert's content: its items, as JSON in one line, and its text.
func sealInsert(key *archive.Key, lane uuid.UUID, insert session.Insert) ([]byte, error) {
	said, err := json.Marshal(insert.Items)
	if err != nil {
		return nil, fmt.Errorf("items of insert %d: %w", insert.Number, err)
	}
	said = append(append(said, '\n'), insert.Text...)
	return key.Seal(aboutInsert(lane, insert.Number), said), nil
}

// openInsert sets the text and the items of a lane's sealed insert.
func openInsert(key *archive.Key, lane uuid.UUID, insert *session.Insert, sealed []byte) error {
	said, err := key.Open(aboutInsert(lane, insert.Number), sealed)
	if err != nil {
		return fmt.Errorf("insert %d of lane %s: %w", insert.Number, lane, err)
	}
	items, text, _ := bytes.Cut(said, []byte{'\n'})
	insert.Text = string(text)
	if err := json.Unmarshal(items, &insert.Items); err != nil {
		return fmt.Errorf("items of insert %d: %w", insert.Number, err)
	}
	return nil
}
