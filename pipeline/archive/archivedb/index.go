package archivedb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/crypto/blake2b"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
)

const (
	// indexBatch is how many messages are indexed in one transaction.
	indexBatch = 200
	// indexBytes bounds the bytes of a batch: it ends behind the message that
	// passes them.
	indexBytes = 8 << 20
	// callsBehind is how far before a lane's own messages, or before a batch, the
	// call of a result is looked for.
	callsBehind = 32
	// sampleShare and fewShare are of how many documents one is in the larger and in
	// the smaller sample; search_documents knows them.
	sampleShare = 64
	fewShare    = 1024
)

// The statements of the index.
const (
	sqlWaiting = `SELECT workspace_id, lane_id FROM archive_unindexed ORDER BY since, workspace_id, lane_id LIMIT $1`
	// What has failed goes to the end of the queue, so that the oldest may stand anywhere. The
	// bound keeps a long queue cheap to look at.
	sqlWaitsSince = `SELECT min(waits_since) FROM (SELECT waits_since FROM archive_unindexed ORDER BY since LIMIT 10000) waiting`
	sqlDone       = `DELETE FROM archive_unindexed WHERE workspace_id = $1 AND lane_id = $2 AND number = $3`
	sqlLater      = `UPDATE archive_unindexed SET since = now() WHERE workspace_id = $1 AND lane_id = $2`
	sqlLine       = `SELECT l.session_id, l.fork_at, s.api_key_id, s.format, coalesce(i.position, l.fork_at), coalesce(u.number, 0)
		FROM lanes l JOIN sessions s ON s.workspace_id = l.workspace_id AND s.id = l.session_id
		LEFT JOIN archive_indexed i ON i.workspace_id = l.workspace_id AND i.lane_id = l.id
		LEFT JOIN archive_unindexed u ON u.workspace_id = l.workspace_id AND u.lane_id = l.id
		WHERE l.workspace_id = $1 AND l.id = $2`
	sqlDocuments = `INSERT INTO archive_documents (workspace_id, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms)
		SELECT $1, $2, first, part, after, $3, $4, at, sampled, terms::bigint[]
		FROM unnest($5::int[], $6::int[], $7::int[], $8::timestamptz[], $9::smallint[], $10::text[]) AS t (first, part, after, at, sampled, terms)
		ON CONFLICT (workspace_id, lane_id, first, part) DO UPDATE SET after = excluded.after, at = excluded.at, terms = excluded.terms
			WHERE archive_documents.terms <> excluded.terms`
	sqlPosition = `INSERT INTO archive_indexed (workspace_id, lane_id, position) VALUES ($1, $2, $3)
		ON CONFLICT (workspace_id, lane_id) DO UPDATE SET position = greatest(archive_indexed.position, excluded.position)`
)

// Keys has the keys under which the terms of workspaces are hashed. The same
// workspace keeps its key.
type Keys interface {
	// TermKey returns the key of a workspace, of 16 to 64 bytes.
	TermKey(ctx context.Context, workspace uuid.UUID) ([]byte, error)
}

// Parse reads an archived message of a wire format.
type Parse func(format conversation.Format, raw []byte) (conversation.Message, error)

// Index is the index over the archive of all workspaces: it is filled from the
// archive, and searched. The database holds hashes of terms, not their text.
type Index struct {
	archive *DB
	keys    Keys
	parse   Parse

	embeddings *embeddings // nil: the text alone is searched
}

// NewIndex returns the index over an archive.
func NewIndex(originals *DB, keys Keys, parse Parse) *Index {
	return &Index{archive: originals, keys: keys, parse: parse}
}

// IndexPending indexes up to limit lanes that have messages which are not indexed,
// those that wait longest first, and returns how many messages it took. What is still
// to be done is in the database, so that any worker may go on at any time; two may
// work on the same lane. A lane that fails goes to the end of the queue, the others
// go on, and the first failure is returned.
func (x *Index) IndexPending(ctx context.Context, limit int) (int, error) {
	lanes, err := x.waiting(ctx, limit)
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(lanes, func(a, b waitingLane) int { return bytes.Compare(a.workspace[:], b.workspace[:]) })
	look := indexing{Index: x}
	for _, one := range lanes {
		if err := look.add(ctx, one); err != nil {
			return look.done, err
		}
	}
	if err := look.flush(ctx); err != nil {
		return look.done, err
	}
	return look.done, look.failure
}

// waitingLane is a lane that has messages which are not indexed.
type waitingLane struct{ workspace, lane uuid.UUID }

func (x *Index) waiting(ctx context.Context, limit int) ([]waitingLane, error) {
	var lanes []waitingLane
	err := x.archive.door.AsWorker(ctx, func(tx *gorm.DB) error {
		rows, err := tx.Statement.ConnPool.QueryContext(ctx, sqlWaiting, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var one waitingLane
			if err := rows.Scan(&one.workspace, &one.lane); err != nil {
				return err
			}
			lanes = append(lanes, one)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list lanes to be indexed: %w", err)
	}
	return lanes, nil
}

// WaitsSince returns since when the oldest lane waits to be indexed; the zero time if none
// waits.
func (x *Index) WaitsSince(ctx context.Context) (time.Time, error) {
	return waitsSince(ctx, x.archive.door, sqlWaitsSince)
}

// waitsSince returns the time that a statement across workspaces finds; the zero time for NULL.
func waitsSince(ctx context.Context, door Door, statement string) (time.Time, error) {
	var since sql.NullTime
	err := door.AsWorker(ctx, func(tx *gorm.DB) error {
		return tx.Statement.ConnPool.QueryRowContext(ctx, statement).Scan(&since)
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("find what has waited longest: %w", err)
	}
	return since.Time, nil
}

// Index indexes the messages of a lane that are not indexed yet and returns how many
// it took. A call whose result is still to come waits for it. What is indexed twice is
// there once.
func (x *Index) Index(ctx context.Context, workspace, lane uuid.UUID) (done int, err error) {
	work, err := x.open(ctx, workspace, lane)
	if err == nil {
		done, err = work.run(ctx)
	}
	if err != nil {
		return done, fmt.Errorf("index lane %s: %w", lane, err)
	}
	return done, nil
}

func (x *Index) exec(ctx context.Context, workspace uuid.UUID, statement string, arguments ...any) error {
	return x.archive.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, statement, arguments...)
		return err
	})
}

// laneWork is the indexing of one lane.
type laneWork struct {
	*Index

	workspace, lane uuid.UUID
	session, key    uuid.UUID
	format          conversation.Format
	fork, position  int
	number          int64 // of the lane's last write; 0: it does not wait
	hasher          *hasher
}

// open begins with a lane: it reads what is known of it.
func (x *Index) open(ctx context.Context, workspace, lane uuid.UUID) (*laneWork, error) {
	key, err := x.keys.TermKey(ctx, workspace)
	if err != nil {
		return nil, err
	}
	w := &laneWork{Index: x, workspace: workspace, lane: lane}
	if w.hasher, err = newHasher(key); err != nil {
		return nil, err
	}
	return w, x.archive.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		err := tx.Statement.ConnPool.QueryRowContext(ctx, sqlLine, workspace, lane).
			Scan(&w.session, &w.fork, &w.key, &w.format, &w.position, &w.number)
		if errors.Is(err, sql.ErrNoRows) {
			return archive.ErrNotFound
		}
		return err
	})
}

// run indexes the rest of the lane, a transaction for each step, and returns how many
// messages that were.
func (w *laneWork) run(ctx context.Context) (done int, err error) {
	for {
		next, err := w.next(ctx)
		if err != nil {
			return done, err
		}
		if err := w.store(ctx, w.workspace, next); err != nil {
			return done, err
		}
		done += next.done
		if next.last {
			return done, nil
		}
	}
}

// step is what the next messages of a lane add to the index. Once stored, the lane waits
// no longer if it was the last, unless it has been written to since.
type step struct {
	*laneWork

	rows     documentRows
	position int // behind the messages
	done     int // messages
	last     bool
}

// next reads the next messages.
func (w *laneWork) next(ctx context.Context) (step, error) {
	next, err := w.read(ctx, w.position)
	if err == nil && search.Orphaned(next.messages) {
		next, err = w.read(ctx, max(0, w.position-callsBehind))
	}
	if err != nil {
		return step{}, err
	}
	settled := next.from + len(next.messages)
	if open := search.Open(next.messages); !next.more && open >= 0 {
		settled = next.from + open
	}
	settled = max(w.position, settled)
	found := step{laneWork: w, position: settled, done: settled - w.position}
	if found.done > 0 {
		found.rows = w.rows(next.from, next.messages[:settled-next.from], next.entries)
	}
	found.last = !next.more || found.done == 0
	return found, nil
}

// stretch is messages of a lane that follow each other.
type stretch struct {
	from     int // place of the first
	messages []conversation.Message
	entries  []archive.Entry
	more     bool // there may be others behind them
}

// read reads the messages from a place on, as far as a batch goes.
func (w *laneWork) read(ctx context.Context, from int) (stretch, error) {
	read := stretch{from: from}
	var err error
	if read.entries, err = w.archive.Originals(ctx, w.workspace, w.lane, from, w.position+indexBatch); err != nil {
		return stretch{}, err
	}
	size := 0
	for i := range read.entries {
		entry := &read.entries[i]
		if entry.Index != from+i {
			return read, nil // what stands behind a hole comes when the hole is filled
		}
		if size > indexBytes && entry.Index > w.position {
			read.more = true
			return read, nil
		}
		if entry.Index >= w.position {
			size += entry.Size
		}
		message, err := w.parse(w.format, entry.Raw)
		if err != nil {
			message = conversation.Message{Role: entry.Role} // opaque to us, and so to a search
		}
		read.messages = append(read.messages, message)
	}
	read.more = len(read.messages) > 0 && from+len(read.messages) == w.position+indexBatch
	return read, nil
}

// documentRows are rows for archive_documents, column by column.
type documentRows struct {
	first, part, after []int32
	at                 []time.Time
	sampled            []int16
	terms              []string // arrays as PostgreSQL writes them
}

// rows are the documents that end behind the lane's position.
func (w *laneWork) rows(from int, messages []conversation.Message, entries []archive.Entry) documentRows {
	var rows documentRows
	for _, document := range search.Documents(from, messages) {
		if document.To <= w.position {
			continue
		}
		rows.first = append(rows.first, int32(document.From)) //nolint:gosec // a place in one body
		rows.part = append(rows.part, int32(document.Part))   //nolint:gosec // a block of one message
		rows.after = append(rows.after, int32(document.To))   //nolint:gosec // a place in one body
		rows.at = append(rows.at, entries[document.To-1-from].StoredAt)
		rows.sampled = append(rows.sampled, w.sample(&document))
		rows.terms = append(rows.terms, literal(w.hasher.terms(document.Terms())))
	}
	return rows
}

// sample chooses documents by their place alone, so that the same are chosen each time.
func (w *laneWork) sample(document *search.Document) int16 {
	sum := blake2b.Sum256(fmt.Appendf(nil, "%s/%d/%d", w.lane, document.From, document.Part))
	switch chance := binary.LittleEndian.Uint64(sum[:]); {
	case chance%fewShare == 0:
		return 2
	case chance%sampleShare == 0:
		return 1
	}
	return 0
}

// store keeps steps of lanes of one workspace, all of them or none. Who archives waits for
// the rows that say what is still to be done, so that they come last.
func (x *Index) store(ctx context.Context, workspace uuid.UUID, steps ...step) error {
	err := x.archive.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		for i := range steps {
			if err := steps[i].insert(ctx, tx); err != nil {
				return err
			}
		}
		for i := range steps {
			if one := &steps[i]; one.last {
				if _, err := tx.Statement.ConnPool.ExecContext(ctx, sqlDone, workspace, one.lane, one.number); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range steps {
		steps[i].laneWork.position = steps[i].position
	}
	return nil
}

func (s *step) insert(ctx context.Context, tx *gorm.DB) error {
	pool := tx.Statement.ConnPool
	if len(s.rows.first) > 0 {
		_, err := pool.ExecContext(ctx, sqlDocuments, s.workspace, s.lane, s.session, s.key,
			s.rows.first, s.rows.part, s.rows.after, s.rows.at, s.rows.sampled, s.rows.terms)
		if err != nil {
			return fmt.Errorf("store documents: %w", err)
		}
	}
	_, err := pool.ExecContext(ctx, sqlPosition, s.workspace, s.lane, s.position)
	return err
}

// hasher makes the hashes of terms. It is not safe for use by several goroutines.
type hasher struct{ keyed hash.Hash }

// hashBytes is the size of a hash in the database.
const hashBytes = 8

func newHasher(key []byte) (*hasher, error) {
	keyed, err := blake2b.New(hashBytes, key)
	if err != nil {
		return nil, fmt.Errorf("key of the terms: %w", err)
	}
	return &hasher{keyed: keyed}, nil
}

// term returns the hash of a term, with its two lowest bits free for a level.
func (h *hasher) term(text string) int64 {
	h.keyed.Reset()
	_, _ = h.keyed.Write([]byte(text))
	var sum [hashBytes]byte
	return int64(binary.LittleEndian.Uint64(h.keyed.Sum(sum[:0])) &^ (search.Levels - 1)) //nolint:gosec // all bits are wanted
}

// terms returns the hashes of terms with their levels.
func (h *hasher) terms(terms []search.Term) []int64 {
	hashes := make([]int64, len(terms))
	for i, term := range terms {
		hashes[i] = h.term(term.Text) | int64(term.Level)
	}
	return hashes
}
