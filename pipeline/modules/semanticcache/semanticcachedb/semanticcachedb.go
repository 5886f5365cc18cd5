// Package semanticcachedb keeps the answers of the module semantic-cache in Postgres,
// sealed, for all replicas.
package semanticcachedb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/tenants"
)

// What a workspace keeps at most; the oldest answers go first.
const (
	MaxEntries = 5_000
	MaxBytes   = 64 << 20
)

// maxAlike is how many answers to the same question in other words are looked at,
// the newest ones.
const maxAlike = 8

// DB keeps the answers of all workspaces, each under the key of its workspace:
// without that key none opens.
type DB struct {
	runner  batchdb.TxRunner
	keys    *archive.Keys
	entries int
	bytes   int
}

// New returns a DB that keeps MaxEntries and MaxBytes for each workspace.
func New(runner batchdb.TxRunner, keys *archive.Keys) *DB {
	return NewBounded(runner, keys, MaxEntries, MaxBytes)
}

// NewBounded returns a DB with other bounds.
func NewBounded(runner batchdb.TxRunner, keys *archive.Keys, entries, bytes int) *DB {
	return &DB{runner: runner, keys: keys, entries: entries, bytes: bytes}
}

const (
	sqlFind = `SELECT key, alike, model, content_type, question, answer, cost_microusd, created_at
		FROM cached_answers
		WHERE workspace_id = $1 AND (key = $2 OR alike = $3) AND created_at > $4
		ORDER BY key = $2 DESC, created_at DESC LIMIT $5`
	sqlPut = `INSERT INTO cached_answers (workspace_id, key, alike, model, content_type, question, answer, size, cost_microusd, created_at, expires_at, end_user)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, nullif($12, '')
		WHERE NOT EXISTS (SELECT FROM end_users u WHERE u.workspace_id = $1 AND u.id = $12 AND u.erased_at >= $13)
		ON CONFLICT (workspace_id, key) DO UPDATE SET alike = excluded.alike, model = excluded.model, content_type = excluded.content_type,
			question = excluded.question, answer = excluded.answer, size = excluded.size, cost_microusd = excluded.cost_microusd,
			created_at = excluded.created_at, expires_at = excluded.expires_at, end_user = excluded.end_user`
	sqlPrune = `DELETE FROM cached_answers WHERE workspace_id = $1 AND (expires_at <= $2 OR key IN (
			SELECT key FROM (
				SELECT key, row_number() OVER newest AS place, sum(size) OVER newest AS bytes
				FROM cached_answers WHERE workspace_id = $1 AND expires_at > $2
				WINDOW newest AS (ORDER BY created_at DESC, key)
			) kept WHERE place > $3 OR bytes > $4))`
	// What has been kept again in the meantime stays.
	sqlRemove = `DELETE FROM cached_answers WHERE workspace_id = $1 AND key = $2 AND answer = $3`
)

// Find returns the answers that were kept after since for a question: the one to
// the very same request first, then those to the same question in other words, the
// newest ones. What does not open is nobody's answer and is removed.
func (d *DB) Find(ctx context.Context, workspace tenants.WorkspaceID, question semanticcache.Question, since time.Time) ([]semanticcache.Entry, error) {
	var found []semanticcache.Entry
	key, err := d.keys.Key(ctx, workspace)
	if err == nil {
		err = d.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
			kept, err := stored(tx, workspace, question, since)
			if err != nil {
				return err
			}
			for i := range kept {
				if entry, opens := kept[i].open(key); opens {
					found = append(found, entry)
				} else if err := remove(tx, workspace, &kept[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return found, batchdb.Wrapf(err, "find cached answers")
}

// row is an answer as it is stored.
type row struct {
	entry            semanticcache.Entry // but for what is sealed
	question, answer []byte
}

// stored returns the rows for a question, in order.
func stored(tx *gorm.DB, workspace tenants.WorkspaceID, question semanticcache.Question, since time.Time) ([]row, error) {
	var kept []row
	err := batchdb.Each(tx, func(found pgx.CollectableRow) error {
		var one row
		var key, alike []byte
		entry := &one.entry
		if err := found.Scan(&key, &alike, &entry.Model, &entry.ContentType, &one.question, &one.answer, &entry.MicroUSD, &entry.At); err != nil {
			return err
		}
		copy(entry.Key[:], key)
		copy(entry.Alike[:], alike)
		kept = append(kept, one)
		return nil
	}, sqlFind, workspace, question.Key[:], nullable(question.Alike), since, 1+maxAlike)
	return kept, err
}

// open returns the entry; opens is false for one that was sealed under another key, or
// for someone else.
func (r *row) open(key *archive.Key) (entry semanticcache.Entry, opens bool) {
	text, textErr := key.Open(aboutPart("question", r.entry.Key), r.question)
	answer, answerErr := key.Open(aboutPart("answer", r.entry.Key), r.answer)
	entry = r.entry
	entry.Text, entry.Answer = string(text), answer
	return entry, textErr == nil && answerErr == nil
}

func remove(tx *gorm.DB, workspace tenants.WorkspaceID, one *row) error {
	_, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlRemove, workspace, one.entry.Key[:], one.answer)
	return err
}

// Put keeps an answer until expires, in place of an earlier one to the same request,
// and drops what has expired at the entry's time or exceeds the workspace's bounds. It keeps none
// to a question from before its end user was erased.
func (d *DB) Put(ctx context.Context, workspace tenants.WorkspaceID, entry semanticcache.Entry, expires time.Time) error {
	key, err := d.keys.Key(ctx, workspace)
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	question := key.Seal(aboutPart("question", entry.Key), []byte(entry.Text))
	answer := key.Seal(aboutPart("answer", entry.Key), entry.Answer)
	err = d.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, sqlPut, workspace, entry.Key[:], nullable(entry.Alike), entry.Model, entry.ContentType,
			question, answer, entry.Size(), entry.MicroUSD, entry.At, expires, entry.EndUser, entry.AskedAt)
		if err != nil {
			return err
		}
		_, err = tx.Statement.ConnPool.ExecContext(ctx, sqlPrune, workspace, entry.At, d.entries, d.bytes)
		return err
	})
	return batchdb.Wrapf(err, "keep answer")
}

// nullable returns a key for the database: NULL for none.
func nullable(key semanticcache.Key) []byte {
	if key == (semanticcache.Key{}) {
		return nil
	}
	return key[:]
}

// aboutPart is what a sealed part of an entry is bound to, beside its workspace.
func aboutPart(part string, key semanticcache.Key) []byte {
	return append([]byte("cached "+part+" "), key[:]...)
}
