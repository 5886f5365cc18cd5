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
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
)

// Channel notifies all replicas of a change to the approved patterns of a workspace; the payload is
// the workspace's id.
const Channel = "palimpsest_patterns"

// Store keeps the patterns of all workspaces.
type Store struct{ runner batchdb.TxRunner }

// New returns the store that runs its transactions by runner.
func New(runner batchdb.TxRunner) *Store { return &Store{runner: runner} }

const (
	// A version that finds patterns in sessions may have added some that no one approved.
	sqlSelect = `SELECT p.id, p.kind, p.text, to_json(p.terms)::text, to_json(p.paths)::text, to_json(p.signatures)::text, p.always,
			p.status, p.version, p.created_at, p.created_by, p.edited_at, p.edited_by
		FROM patterns p WHERE p.workspace_id = $1 AND (p.source = 'typed' OR p.edited_by IS NOT NULL)`
	sqlApproved = sqlSelect + ` AND p.status = 'approved' ORDER BY p.edited_at DESC, p.id LIMIT $2`
	sqlOne      = sqlSelect + ` AND p.id = $2`
	sqlList     = sqlSelect + ` AND ($2 = '' OR p.status = $2) AND ($3 = '00000000-0000-0000-0000-000000000000'::uuid OR p.id < $3)
		ORDER BY p.id DESC LIMIT $4`
	sqlCount = `SELECT count(*) FROM patterns WHERE workspace_id = $1`
	sqlAdd   = `INSERT INTO patterns (workspace_id, id, kind, text, words, terms, paths, signatures, always, status, source,
			created_at, created_by, edited_at, edited_by, last_seen)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'approved', 'typed', $10, $11, $10, $11, $10)
		ON CONFLICT (workspace_id, kind, words) DO NOTHING`
	// Someone writes an existing text again and thereby becomes its author.
	sqlTakeOver = `UPDATE patterns SET text = $4, terms = $5, paths = $6, signatures = $7, always = $8, status = 'approved', reason = '',
			version = version + 1, edited_at = $9, edited_by = $10
		WHERE workspace_id = $1 AND kind = $2 AND words = $3 RETURNING id`
	sqlChange = `UPDATE patterns SET text = $4, words = $5, terms = $6, paths = $7, signatures = $8, always = $9, status = $10,
			reason = '', version = version + 1, edited_at = $11, edited_by = $12
		WHERE workspace_id = $1 AND id = $2 AND version = $3`
	sqlDelete = `DELETE FROM patterns WHERE workspace_id = $1 AND id = $2`
	sqlNotify = `SELECT pg_notify($1, $2)`
)

// Approved returns the approved patterns of a workspace, at most patterns.MaxServed, those edited
// last first.
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
	found, err := s.read(ctx, workspace, sqlList, workspace, string(filter.Status), filter.After, filter.Limit)
	return found, batchdb.Wrapf(err, "patterns of workspace %s", workspace)
}

// Add stores a pattern that someone wrote and returns the stored one, which is approved. It
// replaces a pattern with the same words, whatever its status. It returns patterns.ErrFull.
func (s *Store) Add(ctx context.Context, tenant tenants.Tenant, p patterns.Pattern, now time.Time) (patterns.Pattern, error) {
	workspace := tenant.Workspace()
	p.ID, p.Workspace = uuid.Must(uuid.NewV7()), workspace
	err := s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		added, err := add(tx, &p, now)
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

// Change changes the given version of a pattern and returns the result. It returns
// patterns.ErrNotFound, or patterns.ErrChanged if that is not its version or another pattern has
// the same words.
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

// Delete deletes a pattern. It returns patterns.ErrNotFound.
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
	err := batchdb.ForEach(ctx, batchdb.Of(s.runner, tenant), func(row pgx.CollectableRow) error {
		p, err := scan(row)
		if err != nil {
			return err
		}
		p.Workspace = tenant.Workspace()
		found = append(found, p)
		return nil
	}, query, values...)
	return found, err
}

func scan(row pgx.CollectableRow) (patterns.Pattern, error) {
	var p patterns.Pattern
	var terms, paths, signatures string
	var createdBy, editedBy uuid.NullUUID
	err := row.Scan(&p.ID, &p.Kind, &p.Text, &terms, &paths, &signatures, &p.When.Always, &p.Status, &p.Version,
		&p.CreatedAt, &createdBy, &p.EditedAt, &editedBy)
	if err != nil {
		return p, err
	}
	p.CreatedBy, p.EditedBy = createdBy.UUID, editedBy.UUID
	return p, errors.Join(
		json.Unmarshal([]byte(terms), &p.When.Terms), json.Unmarshal([]byte(paths), &p.When.Paths),
		json.Unmarshal([]byte(signatures), &p.When.Signatures),
	)
}

// add stores a new pattern; it returns false if a pattern with the same words exists.
func add(tx *gorm.DB, p *patterns.Pattern, now time.Time) (bool, error) {
	ctx, pool := tx.Statement.Context, tx.Statement.ConnPool
	var count int
	if err := pool.QueryRowContext(ctx, sqlCount, p.Workspace).Scan(&count); err != nil {
		return false, err
	}
	if count >= patterns.MaxPatterns {
		return false, patterns.ErrFull
	}
	by := uuid.NullUUID{UUID: p.CreatedBy, Valid: p.CreatedBy != uuid.Nil}
	result, err := pool.ExecContext(ctx, sqlAdd, p.Workspace, p.ID, string(p.Kind), p.Text, wordsOf(p.Text),
		list(p.When.Terms), list(p.When.Paths), list(p.When.Signatures), p.When.Always, now, by)
	if err != nil {
		return false, err
	}
	added, err := result.RowsAffected()
	return added == 1, err
}

// wordsOf returns a text's words in a fixed order, so that texts with the same words are one
// pattern.
func wordsOf(text string) string {
	words := patterns.Words(text)
	slices.Sort(words)
	if patterns.Forbids(text) {
		words = append(words, "!")
	}
	return strings.Join(words, " ")
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

// isTaken reports whether an error means that a pattern with the same words exists.
func isTaken(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == "23505" && failure.TableName == "patterns"
}
