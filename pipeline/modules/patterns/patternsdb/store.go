package patternsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/miner"
	"palimpsest/tenants"
)

// Channel is where a change of what can be put into a workspace's prompts is told to
// all replicas: the workspace's id.
const Channel = "palimpsest_patterns"

// Store keeps the patterns of all workspaces.
type Store struct{ runner batchdb.TxRunner }

// New returns the store that runs its transactions by runner.
func New(runner batchdb.TxRunner) *Store { return &Store{runner: runner} }

const (
	sqlSelect = `SELECT p.id, p.kind, p.text, to_json(p.terms)::text, to_json(p.paths)::text, to_json(p.signatures)::text, p.always,
			p.status, p.reason, p.source, p.version, p.created_at, p.created_by, p.edited_at, p.edited_by, p.last_seen,
			e.sessions, e.messages, u.lanes, u.successes
		FROM patterns p
		CROSS JOIN LATERAL (SELECT count(DISTINCT session_id) AS sessions, count(*) AS messages
			FROM pattern_evidence WHERE workspace_id = p.workspace_id AND pattern_id = p.id) e
		CROSS JOIN LATERAL (SELECT count(*) AS lanes, count(*) FILTER (WHERE outcome = 'success') AS successes
			FROM pattern_uses WHERE workspace_id = p.workspace_id AND pattern_id = p.id) u
		WHERE p.workspace_id = $1`
	sqlApproved = sqlSelect + ` AND p.status = 'approved' ORDER BY p.last_seen DESC, p.id LIMIT $2`
	sqlOne      = sqlSelect + ` AND p.id = $2`
	sqlList     = sqlSelect + ` AND (cardinality($2::text[]) = 0 AND p.status <> 'seen' OR p.status = ANY($2)) AND ($3 = '00000000-0000-0000-0000-000000000000'::uuid OR p.id < $3)
		ORDER BY p.id DESC LIMIT $4`
	sqlPlaces = `SELECT session_id, lane_id, message, at FROM pattern_evidence
		WHERE workspace_id = $1 AND pattern_id = $2 ORDER BY at DESC, lane_id, message LIMIT $3`
	sqlCounts = `SELECT status, count(*) FROM patterns WHERE workspace_id = $1 AND status <> 'seen' GROUP BY status`
	sqlCount  = `SELECT count(*) FROM patterns WHERE workspace_id = $1`
	// Nobody sees those met too rarely so far: the oldest of them makes room.
	sqlMakeRoom = `DELETE FROM patterns WHERE workspace_id = $1 AND id = (
		SELECT id FROM patterns WHERE workspace_id = $1 AND status = 'seen' ORDER BY last_seen, id LIMIT 1)`
	sqlAdd = `INSERT INTO patterns (workspace_id, id, kind, text, words, terms, paths, signatures, always, status, source,
			needs_sessions, needs_messages, created_at, created_by, edited_at, edited_by, last_seen)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $14, $15, $14)
		ON CONFLICT (workspace_id, kind, words) DO NOTHING`
	// Someone writes what was met, or rejected, before: it is theirs now.
	sqlTakeOver = `UPDATE patterns SET text = $4, terms = $5, paths = $6, signatures = $7, always = $8, status = 'approved', reason = '',
			version = version + 1, edited_at = $9, edited_by = $10, last_seen = greatest(last_seen, $9)
		WHERE workspace_id = $1 AND kind = $2 AND words = $3 RETURNING id`
	sqlChange = `UPDATE patterns SET text = $4, words = $5, terms = $6, paths = $7, signatures = $8, always = $9, status = $10,
			reason = '', version = version + 1, edited_at = $11, edited_by = $12,
			last_seen = CASE WHEN $10 = 'approved' AND status <> 'approved' THEN greatest(last_seen, $11) ELSE last_seen END
		WHERE workspace_id = $1 AND id = $2 AND version = $3`
	sqlDelete = `DELETE FROM patterns WHERE workspace_id = $1 AND id = $2`
	sqlNotify = `SELECT pg_notify($1, $2)`
)

// Approved returns the approved patterns of a workspace, at most patterns.MaxServed, those that were
// met or used last before the others.
func (s *Store) Approved(ctx context.Context, workspace tenants.WorkspaceID) ([]patterns.Pattern, error) {
	found, err := s.read(ctx, workspace, sqlApproved, workspace, patterns.MaxServed)
	return found, batchdb.Wrapf(err, "approved patterns of workspace %s", workspace)
}

// Pattern returns one pattern, or patterns.ErrNotFound.
func (s *Store) Pattern(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) (patterns.Pattern, error) {
	found, err := s.read(ctx, tenant, sqlOne, tenant.Workspace(), id)
	one, err := batchdb.First(found, err, patterns.ErrNotFound)
	return one, batchdb.Wrapf(err, "pattern %s", id)
}

// List returns patterns, the newest first.
func (s *Store) List(ctx context.Context, workspace tenants.WorkspaceID, filter patterns.Filter) ([]patterns.Pattern, error) {
	found, err := s.read(ctx, workspace, sqlList, workspace, statuses(filter.Statuses), filter.After, filter.Limit)
	return found, batchdb.Wrapf(err, "patterns of workspace %s", workspace)
}

// Counts returns how many patterns have each status but Seen.
func (s *Store) Counts(ctx context.Context, workspace tenants.WorkspaceID) (map[patterns.Status]int, error) {
	counts := map[patterns.Status]int{}
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return batchdb.Each(tx, func(row pgx.CollectableRow) error {
			var status patterns.Status
			var count int
			if err := row.Scan(&status, &count); err != nil {
				return err
			}
			counts[status] = count
			return nil
		}, sqlCounts, workspace)
	})
	return counts, batchdb.Wrapf(err, "count patterns of workspace %s", workspace)
}

// Places returns where a pattern was met, the newest first.
func (s *Store) Places(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, limit int) ([]patterns.Place, error) {
	var places []patterns.Place
	err := s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		places, err = batchdb.Rows(tx, func(row pgx.CollectableRow) (place patterns.Place, err error) {
			err = row.Scan(&place.Session, &place.Lane, &place.Message, &place.At)
			return place, err
		}, sqlPlaces, workspace, id, limit)
		return err
	})
	return places, batchdb.Wrapf(err, "places of pattern %s", id)
}

// Add keeps a pattern that someone wrote and returns it as it is kept: approved. One
// with the same words, whatever became of it, is written over. It returns
// patterns.ErrFull.
func (s *Store) Add(ctx context.Context, tenant tenants.Tenant, p patterns.Pattern, now time.Time) (patterns.Pattern, error) {
	workspace := tenant.Workspace()
	p.ID, p.Workspace, p.Status, p.Source = uuid.Must(uuid.NewV7()), workspace, patterns.Approved, patterns.Typed
	err := s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		added, err := add(tx, &p, 1, 1, now)
		if err != nil {
			return err
		}
		if !added {
			row := tx.Statement.ConnPool.QueryRowContext(ctx, sqlTakeOver, workspace, string(p.Kind), wordsOf(p.Text), p.Text,
				list(p.When.Terms), list(p.When.Paths), list(p.When.Signatures), p.When.Always, now, p.CreatedBy)
			if err := row.Scan(&p.ID); err != nil {
				return err
			}
		}
		return notify(tx, workspace)
	})
	if err != nil {
		return patterns.Pattern{}, fmt.Errorf("add pattern: %w", err)
	}
	return s.Pattern(ctx, tenant, p.ID)
}

// Change changes the given version of a pattern and returns what it is now. It
// returns patterns.ErrNotFound, or patterns.ErrChanged if that is not its version or
// another pattern has the same words.
func (s *Store) Change(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, version int, change patterns.Change, by uuid.UUID, now time.Time) (patterns.Pattern, error) {
	workspace := tenant.Workspace()
	p, err := s.Pattern(ctx, tenant, id)
	if err != nil {
		return patterns.Pattern{}, err
	}
	if change.Text != nil {
		p.Text = *change.Text
	}
	if change.When != nil {
		p.When = *change.When
	}
	if change.Status != nil {
		p.Status = *change.Status
	}
	err = s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		result, err := tx.Statement.ConnPool.ExecContext(ctx, sqlChange, workspace, id, version, p.Text, wordsOf(p.Text),
			list(p.When.Terms), list(p.When.Paths), list(p.When.Signatures), p.When.Always, string(p.Status), now, by)
		if err != nil {
			return err
		}
		if changed, err := result.RowsAffected(); err != nil || changed == 0 {
			return errors.Join(err, patterns.ErrChanged)
		}
		return notify(tx, workspace)
	})
	if isTaken(err) {
		err = patterns.ErrChanged
	}
	if err != nil {
		return patterns.Pattern{}, fmt.Errorf("change pattern %s: %w", id, err)
	}
	return s.Pattern(ctx, tenant, id)
}

// Delete deletes a pattern with what is known of its evidence and uses. It returns
// patterns.ErrNotFound.
func (s *Store) Delete(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error {
	workspace := tenant.Workspace()
	err := s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		result, err := tx.Statement.ConnPool.ExecContext(ctx, sqlDelete, workspace, id)
		if err != nil {
			return err
		}
		if deleted, err := result.RowsAffected(); err != nil || deleted == 0 {
			return errors.Join(err, patterns.ErrNotFound)
		}
		return notify(tx, workspace)
	})
	return batchdb.Wrapf(err, "delete pattern %s", id)
}

func (s *Store) read(ctx context.Context, tenant tenants.Tenant, query string, values ...any) ([]patterns.Pattern, error) {
	var found []patterns.Pattern
	err := s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		return batchdb.Each(tx, func(row pgx.CollectableRow) error {
			p, err := scan(row)
			if err != nil {
				return err
			}
			p.Workspace = tenant.Workspace()
			found = append(found, p)
			return nil
		}, query, values...)
	})
	return found, err
}

func scan(row pgx.CollectableRow) (patterns.Pattern, error) {
	var p patterns.Pattern
	var terms, paths, signatures string
	var createdBy, editedBy uuid.NullUUID
	err := row.Scan(&p.ID, &p.Kind, &p.Text, &terms, &paths, &signatures, &p.When.Always, &p.Status, &p.Reason, &p.Source, &p.Version,
		&p.CreatedAt, &createdBy, &p.EditedAt, &editedBy, &p.LastSeen, &p.Sessions, &p.Evidence, &p.Injected, &p.Successes)
	if err != nil {
		return p, err
	}
	p.CreatedBy, p.EditedBy = createdBy.UUID, editedBy.UUID
	return p, errors.Join(
		json.Unmarshal([]byte(terms), &p.When.Terms), json.Unmarshal([]byte(paths), &p.When.Paths),
		json.Unmarshal([]byte(signatures), &p.When.Signatures),
	)
}

// add keeps a new pattern; it is false if there is one with the same words.
func add(tx *gorm.DB, p *patterns.Pattern, sessions, messages int, now time.Time) (bool, error) {
	ctx, pool := tx.Statement.Context, tx.Statement.ConnPool
	var count int
	if err := pool.QueryRowContext(ctx, sqlCount, p.Workspace).Scan(&count); err != nil {
		return false, err
	}
	if count >= patterns.MaxPatterns {
		result, err := pool.ExecContext(ctx, sqlMakeRoom, p.Workspace)
		if err != nil {
			return false, err
		}
		if made, err := result.RowsAffected(); err != nil || made == 0 {
			return false, errors.Join(err, patterns.ErrFull)
		}
	}
	by := uuid.NullUUID{UUID: p.CreatedBy, Valid: p.CreatedBy != uuid.Nil}
	result, err := pool.ExecContext(ctx, sqlAdd, p.Workspace, p.ID, string(p.Kind), p.Text, wordsOf(p.Text),
		list(p.When.Terms), list(p.When.Paths), list(p.When.Signatures), p.When.Always, string(p.Status), string(p.Source),
		sessions, messages, now, by)
	if err != nil {
		return false, err
	}
	added, err := result.RowsAffected()
	return added == 1, err
}

// wordsOf returns a text's words in an order of their own: texts with the same are one
// pattern.
func wordsOf(text string) string {
	words := patterns.Words(text)
	slices.Sort(words)
	if patterns.Forbids(text) {
		words = append(words, "!")
	}
	return strings.Join(words, " ")
}

// statuses writes statuses as they are stored.
func statuses(all []patterns.Status) []string {
	written := make([]string, len(all))
	for i, status := range all {
		written[i] = string(status)
	}
	return written
}

// list keeps an empty list from being NULL.
func list(values []string) []string {
	if values == nil {
		return []string{}
	}
	return values
}

func notify(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlNotify, Channel, workspace.String())
	return err
}

// Interface guard.
var _ miner.Store = (*Store)(nil)
