// Package semanticcachedb keeps the answers of the module semantic-cache in Postgres,
// sealed, for all replicas.
package semanticcachedb

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/modules/semanticcache"
)

// What a workspace keeps at most; the oldest answers go first.
const (
	MaxEntries = 5_000
	MaxBytes   = 64 << 20
)

// maxAlike is how many answers to the same question in other words are looked at,
// the newest ones.
const maxAlike = 8

// Door opens transactions in which one workspace's rows can be seen and changed.
type Door interface {
	InTenant(ctx context.Context, workspace uuid.UUID, fn func(tx *gorm.DB) error) error
}

// Sealer seals what lies in the database. What is sealed opens only for the same
// workspace and name.
type Sealer interface {
	SealBytes(workspace uuid.UUID, name string, plain []byte) ([]byte, error)
	OpenBytes(workspace uuid.UUID, name string, sealed []byte) ([]byte, error)
}

// DB keeps the answers of all workspaces.
type DB struct {
	door    Door
	sealer  Sealer
	entries int
	bytes   int
}

// New returns a DB that keeps MaxEntries and MaxBytes for each workspace.
func New(door Door, sealer Sealer) *DB { return NewBounded(door, sealer, MaxEntries, MaxBytes) }

// NewBounded returns a DB with other bounds.
func NewBounded(door Door, sealer Sealer, entries, bytes int) *DB {
	return &DB{door: door, sealer: sealer, entries: entries, bytes: bytes}
}

const (
	sqlFind = `SELECT key, alike, model, content_type, question, answer, cost_microusd, created_at
		FROM cached_answers
		WHERE workspace_id = $1 AND (key = $2 OR alike = $3) AND created_at > $4
		ORDER BY key = $2 DESC, created_at DESC LIMIT $5`
	sqlPut = `INSERT INTO cached_answers (workspace_id, key, alike, model, content_type, question, answer, size, cost_microusd, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (workspace_id, key) DO UPDATE SET alike = excluded.alike, model = excluded.model, content_type = excluded.content_type,
			question = excluded.question, answer = excluded.answer, size = excluded.size, cost_microusd = excluded.cost_microusd,
			created_at = excluded.created_at, expires_at = excluded.expires_at`
	sqlPrune = `DELETE FROM cached_answers WHERE workspace_id = $1 AND (expires_at <= $2 OR key IN (
			SELECT key FROM (
				SELECT key, row_number() OVER newest AS place, sum(size) OVER newest AS bytes
				FROM cached_answers WHERE workspace_id = $1 AND expires_at > $2
				WINDOW newest AS (ORDER BY created_at DESC, key)
			) kept WHERE place > $3 OR bytes > $4))`
)

// Find returns the answers that were kept after since for a question: the one to
// the very same request first, then those to the same question in other words, the
// newest ones. What no longer opens is left out.
func (d *DB) Find(ctx context.Context, workspace uuid.UUID, question semanticcache.Question, since time.Time) ([]semanticcache.Entry, error) {
	var found []semanticcache.Entry
	err := d.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		rows, err := tx.Statement.ConnPool.QueryContext(ctx, sqlFind, workspace, question.Key[:], nullable(question.Alike), since, 1+maxAlike)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			entry, opens, err := d.read(workspace, rows)
			if err != nil {
				return err
			}
			if opens {
				found = append(found, entry)
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("find cached answers: %w", err)
	}
	return found, nil
}

// read reads a row; opens is false for one that was sealed with a master key that is
// gone, or for somebody else.
func (d *DB) read(workspace uuid.UUID, rows *sql.Rows) (entry semanticcache.Entry, opens bool, err error) {
	var key, alike, question, answer []byte
	if err := rows.Scan(&key, &alike, &entry.Model, &entry.ContentType, &question, &answer, &entry.MicroUSD, &entry.At); err != nil {
		return entry, false, err
	}
	copy(entry.Key[:], key)
	copy(entry.Alike[:], alike)
	text, textErr := d.sealer.OpenBytes(workspace, nameOf("question", entry.Key), question)
	body, bodyErr := d.sealer.OpenBytes(workspace, nameOf("answer", entry.Key), answer)
	entry.Text, entry.Answer = string(text), body
	return entry, textErr == nil && bodyErr == nil, nil
}

// Put keeps an answer until expires, in place of an earlier one to the same request,
// and drops what has expired at the entry's time or exceeds the workspace's bounds.
func (d *DB) Put(ctx context.Context, workspace uuid.UUID, entry semanticcache.Entry, expires time.Time) error {
	question, err := d.sealer.SealBytes(workspace, nameOf("question", entry.Key), []byte(entry.Text))
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	answer, err := d.sealer.SealBytes(workspace, nameOf("answer", entry.Key), entry.Answer)
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	err = d.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, sqlPut, workspace, entry.Key[:], nullable(entry.Alike), entry.Model, entry.ContentType,
			question, answer, entry.Size(), entry.MicroUSD, entry.At, expires)
		if err != nil {
			return err
		}
		_, err = tx.Statement.ConnPool.ExecContext(ctx, sqlPrune, workspace, entry.At, d.entries, d.bytes)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// nullable returns a key for the database: NULL for none.
func nullable(key semanticcache.Key) []byte {
	if key == (semanticcache.Key{}) {
		return nil
	}
	return key[:]
}

// nameOf names a sealed part of an entry.
func nameOf(part string, key semanticcache.Key) string { return fmt.Sprintf("%s:%x", part, key) }
