package archivedb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/blake2b"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// laneWork is the indexing of one lane.
type laneWork struct {
	*Index

	workspace    tenants.WorkspaceID
	lane         uuid.UUID
	session, key uuid.UUID
	format       conversation.Format
	position     int
	number       int64 // of the lane's last write; 0 if it does not wait
	about        int   // estimate of new messages
	hasher       *hasher
}

// open reads the index state of a workspace's lanes and starts their indexing. It omits deleted lanes.
func (x *Index) open(ctx context.Context, workspace tenants.WorkspaceID, lanes ...uuid.UUID) ([]*laneWork, error) {
	key, err := x.archive.keys.TermKey(ctx, workspace)
	if err != nil {
		return nil, err
	}
	hasher, err := newHasher(key)
	if err != nil {
		return nil, err
	}
	works := make([]*laneWork, 0, len(lanes))
	err = batchdb.ForEach(ctx, batchdb.Of(x.archive.runner, workspace), func(row pgx.CollectableRow) error {
		w := &laneWork{Index: x, workspace: workspace, hasher: hasher}
		works = append(works, w)
		return row.Scan(&w.lane, &w.session, &w.key, &w.format, &w.position, &w.number, &w.about)
	}, sqlLines, workspace, identifiers(lanes))
	return works, err
}

// identifiers returns ids in the type with the fastest encoding.
func identifiers(ids []uuid.UUID) [][16]byte {
	plain := make([][16]byte, len(ids))
	for i, id := range ids {
		plain[i] = id
	}
	return plain
}

// openOne starts the indexing of one lane, or returns archive.ErrNotFound if it was deleted.
func (x *Index) openOne(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (*laneWork, error) {
	works, err := x.open(ctx, workspace, lane)
	return batchdb.First(works, err, archive.ErrNotFound)
}

// run indexes the rest of the lane in at most steps steps, a transaction for each, and returns the number of
// messages.
func (w *laneWork) run(ctx context.Context, steps int) (done int, err error) {
	for left := steps; ; left-- {
		next, err := w.next(ctx)
		if err != nil {
			return done, err
		}
		next.pause = left == 1
		if err := w.store(ctx, w.workspace, next); err != nil {
			return done, err
		}
		done += next.done
		if next.last || next.pause {
			return done, nil
		}
	}
}

// step holds the index additions for a lane's next messages. Once the last step is stored, the lane leaves
// the queue, unless it has been written to since.
type step struct {
	*laneWork

	rows     documentRows
	position int // after its messages
	done     int // number of messages
	last     bool
	pause    bool // the rest is for the next process that claims the lane
}

// next reads the next messages.
func (w *laneWork) next(ctx context.Context) (step, error) {
	entries, err := w.archive.Originals(ctx, w.workspace, w.lane, w.position, w.position+indexBatch)
	if err != nil {
		return step{}, err
	}
	return w.step(ctx, entries)
}

// step makes a step of the entries that follow the lane's position.
func (w *laneWork) step(ctx context.Context, entries []archive.Entry) (step, error) {
	next := w.parsed(w.position, entries)
	if search.Orphaned(next.messages) {
		from := max(0, w.position-callsBehind)
		entries, err := w.archive.Originals(ctx, w.workspace, w.lane, from, w.position+indexBatch)
		if err != nil {
			return step{}, err
		}
		next = w.parsed(from, entries)
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

// stretch is a run of consecutive messages of a lane.
type stretch struct {
	from     int // place of the first
	messages []conversation.Message
	entries  []archive.Entry
	more     bool // more may follow
}

// parsed parses entries that begin at a place, up to the size of a batch.
func (w *laneWork) parsed(from int, entries []archive.Entry) stretch {
	read := stretch{from: from, entries: entries}
	size := 0
	for i := range entries {
		entry := &entries[i]
		if entry.Index != from+i {
			return read // messages after a gap are indexed once it is filled
		}
		if size > indexBytes && entry.Index > w.position {
			read.more = true
			return read
		}
		if entry.Index >= w.position {
			size += entry.Size
		}
		message, err := w.parse(w.format, entry.Raw)
		if err != nil {
			message = conversation.Message{Role: entry.Role} // unreadable, so its content is not searchable
		}
		read.messages = append(read.messages, message)
	}
	read.more = len(read.messages) > 0 && from+len(read.messages) == w.position+indexBatch
	return read
}

// documentRows are rows for archive_documents, column by column.
type documentRows struct {
	lanes, sessions, keys [][16]byte // encoded faster than uuid.UUID
	first, part, after    []int32
	at                    []time.Time
	sampled               []int16
	terms                 []string // arrays as PostgreSQL writes them
}

// rows returns the rows of documents that end after the lane's position.
func (w *laneWork) rows(from int, messages []conversation.Message, entries []archive.Entry) documentRows {
	var rows documentRows
	for _, document := range search.Documents(from, messages) {
		if document.To <= w.position {
			continue
		}
		rows.lanes, rows.sessions, rows.keys = append(rows.lanes, w.lane), append(rows.sessions, w.session), append(rows.keys, w.key)
		rows.first = append(rows.first, int32(document.From)) //nolint:gosec // a place in one body
		rows.part = append(rows.part, int32(document.Part))   //nolint:gosec // a block of one message
		rows.after = append(rows.after, int32(document.To))   //nolint:gosec // a place in one body
		rows.at = append(rows.at, entries[document.To-1-from].StoredAt)
		rows.sampled = append(rows.sampled, w.sample(&document))
		rows.terms = append(rows.terms, literal(w.hasher.terms(document.Terms())))
	}
	return rows
}

// add adds the rows of another step.
func (r *documentRows) add(more documentRows) {
	r.lanes, r.sessions, r.keys = append(r.lanes, more.lanes...), append(r.sessions, more.sessions...), append(r.keys, more.keys...)
	r.first, r.part, r.after = append(r.first, more.first...), append(r.part, more.part...), append(r.after, more.after...)
	r.at, r.sampled, r.terms = append(r.at, more.at...), append(r.sampled, more.sampled...), append(r.terms, more.terms...)
}

// sample chooses documents by their place alone, so that the choice is stable.
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

// store stores steps of a workspace's lanes in one transaction. The queue's rows come last and sorted,
// because writers to the archive wait for them.
func (x *Index) store(ctx context.Context, workspace tenants.WorkspaceID, steps ...step) error {
	slices.SortFunc(steps, func(a, b step) int { return bytes.Compare(a.lane[:], b.lane[:]) })
	err := x.archive.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := insert(tx, workspace, steps); err != nil {
			return err
		}
		var lanes [][16]byte
		var numbers []int64
		for i := range steps {
			one := &steps[i]
			switch {
			case one.last:
				lanes, numbers = append(lanes, one.lane), append(numbers, one.number)
			case one.pause:
				lanes, numbers = append(lanes, one.lane), append(numbers, 0) // it stays in the queue, whatever was written
			}
		}
		if len(lanes) == 0 {
			return nil
		}
		return batchdb.Later(tx, sqlIndexed, workspace, lanes, numbers)
	})
	if err != nil {
		return err
	}
	for i := range steps {
		steps[i].laneWork.position = steps[i].position
	}
	return nil
}

// insert adds the documents of steps to the index.
func insert(tx *gorm.DB, workspace tenants.WorkspaceID, steps []step) error {
	var rows documentRows
	lanes, positions := make([][16]byte, len(steps)), make([]int32, len(steps))
	for i := range steps {
		rows.add(steps[i].rows)
		lanes[i], positions[i] = steps[i].lane, int32(steps[i].position) //nolint:gosec // a place in one body
	}
	if len(rows.first) > 0 {
		err := batchdb.Later(tx, sqlDocuments, workspace, rows.lanes, rows.sessions, rows.keys,
			rows.first, rows.part, rows.after, rows.at, rows.sampled, rows.terms)
		if err != nil {
			return fmt.Errorf("store documents: %w", err)
		}
	}
	return batchdb.Later(tx, sqlPosition, workspace, lanes, positions)
}

// failed moves a lane to the end of the queue, or after cancellation releases it. It returns err with the
// lane's id.
func (x *Index) failed(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, err error) error {
	err = fmt.Errorf("index lane %s: %w", lane, err)
	statement := sqlLater
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), freeTimeout)
		defer cancel()
		statement = sqlFree
	}
	return errors.Join(err, x.exec(ctx, workspace, statement, workspace, lane))
}
