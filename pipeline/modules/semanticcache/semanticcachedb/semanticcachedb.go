// Package semanticcachedb keeps the answers of the module semantic-cache in Postgres,
// sealed, for all replicas.
package semanticcachedb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/tenants"
)

// The limits of a workspace; the oldest answers go first.
const (
	MaxEntries = 5_000
	MaxBytes   = 64 << 20
)

// DB keeps the answers of all workspaces, each sealed with the key of its workspace, so that no
// answer opens without that key.
type DB struct {
	runner  batchdb.TxRunner
	keys    *archive.Keys
	entries int
	bytes   int
}

// New returns a DB with the limits MaxEntries and MaxBytes for each workspace.
func New(runner batchdb.TxRunner, keys *archive.Keys) *DB {
	return NewBounded(runner, keys, MaxEntries, MaxBytes)
}

// NewBounded returns a DB with other limits.
func NewBounded(runner batchdb.TxRunner, keys *archive.Keys, entries, bytes int) *DB {
	return &DB{runner: runner, keys: keys, entries: entries, bytes: bytes}
}

const (
	sqlFind = `SELECT model, content_type, answer, cost_microusd, created_at
		FROM cached_answers WHERE workspace_id = $1 AND key = $2 AND created_at > $3`
	// A version that looks for similar questions still reads question, which must open.
	sqlPut = `INSERT INTO cached_answers (workspace_id, key, model, content_type, question, answer, size, cost_microusd, created_at, expires_at, end_user)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, nullif($11, '')
		WHERE NOT EXISTS (SELECT FROM end_users u WHERE u.workspace_id = $1 AND u.id = $11 AND u.erased_at >= $12)
		ON CONFLICT (workspace_id, key) DO UPDATE SET alike = NULL, model = excluded.model, content_type = excluded.content_type,
			question = excluded.question, answer = excluded.answer, size = excluded.size, cost_microusd = excluded.cost_microusd,
			created_at = excluded.created_at, expires_at = excluded.expires_at, end_user = excluded.end_user`
	sqlPrune = `DELETE FROM cached_answers WHERE workspace_id = $1 AND (expires_at <= $2 OR key IN (
			SELECT key FROM (
				SELECT key, row_number() OVER newest AS place, sum(size) OVER newest AS bytes
				FROM cached_answers WHERE workspace_id = $1 AND expires_at > $2
				WINDOW newest AS (ORDER BY created_at DESC, key)
			) kept WHERE place > $3 OR bytes > $4))`
	// An answer that has been replaced in the meantime stays.
	sqlRemove = `DELETE FROM cached_answers WHERE workspace_id = $1 AND key = $2 AND answer = $3`
)

// Find returns the answer to a request that was kept after since. It removes an answer that it
// can't open.
func (d *DB) Find(ctx context.Context, workspace tenants.WorkspaceID, id semanticcache.Key, since time.Time) (entry semanticcache.Entry, found bool, err error) {
	key, err := d.keys.Key(ctx, workspace)
	if err != nil {
		return entry, false, fmt.Errorf("find cached answer: %w", err)
	}
	err = d.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var sealed []byte
		row := tx.Statement.ConnPool.QueryRowContext(ctx, sqlFind, workspace, id[:], since)
		switch err := row.Scan(&entry.Model, &entry.ContentType, &sealed, &entry.MicroUSD, &entry.At); {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		entry.Key = id
		if entry.Answer, err = key.Open(aboutPart("answer", id), sealed); err != nil {
			_, err = tx.Statement.ConnPool.ExecContext(ctx, sqlRemove, workspace, id[:], sealed)
			return err
		}
		found = true
		return nil
	})
	return entry, found, batchdb.Wrapf(err, "find cached answer")
}

// Put stores an answer until expires, replaces an earlier one to the same request, and drops
// answers that have expired at the entry's time or exceed the workspace's limits. It drops an
// answer to a question from before its end user was erased.
func (d *DB) Put(ctx context.Context, workspace tenants.WorkspaceID, entry semanticcache.Entry, expires time.Time) error {
	key, err := d.keys.Key(ctx, workspace)
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	question := key.Seal(aboutPart("question", entry.Key), nil)
	answer := key.Seal(aboutPart("answer", entry.Key), entry.Answer)
	err = d.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, sqlPut, workspace, entry.Key[:], entry.Model, entry.ContentType,
			question, answer, entry.Size(), entry.MicroUSD, entry.At, expires, entry.EndUser, entry.AskedAt)
		if err != nil {
			return err
		}
		_, err = tx.Statement.ConnPool.ExecContext(ctx, sqlPrune, workspace, entry.At, d.entries, d.bytes)
		return err
	})
	return batchdb.Wrapf(err, "keep answer")
}

// aboutPart is the context that a sealed part of an entry is bound to, besides its workspace.
func aboutPart(part string, key semanticcache.Key) []byte {
	return append([]byte("cached "+part+" "), key[:]...)
}
