package archivedb

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// DB is the archive of all workspaces.
type DB struct {
	runner batchdb.TxRunner
	packer packer
	bucket archive.Bucket // nil if absent
	keys   *archive.Keys
}

// New returns the archive that runs its transactions with runner. It seals its data under the key of its
// workspace.
func New(runner batchdb.TxRunner, keys *archive.Keys) *DB {
	return &DB{runner: runner, packer: newPacker(), keys: keys}
}

// WithBucket returns the archive with a bucket for the bytes that a Mover moves.
func (d *DB) WithBucket(bucket archive.Bucket) *DB {
	return &DB{runner: d.runner, packer: d.packer, bucket: bucket, keys: d.keys}
}

// Lane is a lane in the archive.
type Lane struct {
	ID      uuid.UUID
	Entries int // messages of the lane in the archive
	LastAt  time.Time
}

const (
	sqlLanes = `SELECT l.id, l.last_at,
			(SELECT count(*) FROM lane_entries(l.workspace_id, l.id))
		FROM lanes l WHERE l.workspace_id = $1 AND l.session_id = $2
		ORDER BY l.kind <> 'main', l.last_at DESC, l.id DESC`
	// OFFSET 0 has the planner look each message up. A plan made while the table was still empty would read
	// all of it.
	sqlEntries = `SELECT e.index, e.hash, e.role, e.tokens, e.stored_at, o.size
		FROM lane_entries($1, $2, $3, 2147483647) e
		CROSS JOIN LATERAL (SELECT size FROM archive_objects WHERE workspace_id = $1 AND hash = e.hash OFFSET 0) o
		ORDER BY e.index LIMIT $4`
	sqlOriginals = `SELECT e.span, e.index, e.hash, e.role, e.tokens, e.stored_at, o.size, o.encoding, o.place, o.segment_id, coalesce(o.start, 0), coalesce(o.length, 0), o.bytes
		FROM (
			SELECT span, e.* FROM unnest($2::uuid[], $3::int[], $4::int[]) WITH ORDINALITY AS wanted (lane, first, below, span)
			CROSS JOIN LATERAL lane_entries($1, lane, first, below) e
		) e CROSS JOIN LATERAL (
			SELECT size, encoding, place, segment_id, start, length, bytes FROM archive_objects WHERE workspace_id = $1 AND hash = e.hash OFFSET 0
		) o
		ORDER BY e.span, e.index`
	sqlObject = `SELECT size, encoding, place, segment_id, coalesce(start, 0), coalesce(length, 0), bytes FROM archive_objects
		WHERE workspace_id = $1 AND hash = $2 AND place <> 2`
)

// Lanes returns the lanes of a session. Lanes of the conversation come first, each group by most recent
// activity, so that the first is the session's main lane. It returns archive.ErrNotFound for a session
// without lanes.
func (d *DB) Lanes(ctx context.Context, workspace tenants.WorkspaceID, session uuid.UUID) ([]Lane, error) {
	lanes, err := batchdb.List(ctx, batchdb.Of(d.runner, workspace), func(row pgx.CollectableRow) (lane Lane, err error) {
		err = row.Scan(&lane.ID, &lane.LastAt, &lane.Entries)
		return lane, err
	}, sqlLanes, workspace, session)
	if err != nil {
		return nil, fmt.Errorf("lanes of session %s: %w", session, err)
	}
	if len(lanes) == 0 {
		return nil, fmt.Errorf("lanes of session %s: %w", session, archive.ErrNotFound)
	}
	return lanes, nil
}

// Entries returns up to limit entries of a lane from index from, in order and without their bytes. The next
// call continues at the last index plus one.
func (d *DB) Entries(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, limit int) ([]archive.Entry, error) {
	entries, err := batchdb.List(ctx, batchdb.Of(d.runner, workspace), func(row pgx.CollectableRow) (entry archive.Entry, err error) {
		var hash []byte
		if err := row.Scan(&entry.Index, &hash, &entry.Role, &entry.Tokens, &entry.StoredAt, &entry.Size); err != nil {
			return entry, err
		}
		entry.Hash = conversation.Hash(hash)
		return entry, nil
	}, sqlEntries, workspace, lane, from, limit)
	return entries, batchdb.Wrapf(err, "entries of lane %s", lane)
}

// Original returns one message of a lane with its bytes, verified by their hash. It returns
// archive.ErrNotFound or archive.ErrDamaged.
func (d *DB) Original(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, index int) (archive.Entry, error) {
	entries, err := d.Originals(ctx, workspace, lane, index, index+1)
	if err != nil {
		return archive.Entry{}, err
	}
	if len(entries) == 0 {
		return archive.Entry{}, fmt.Errorf("message %d of lane %s: %w", index, lane, archive.ErrNotFound)
	}
	return entries[0], nil
}

// Originals returns the messages of a lane from index from to to (excluded) with their bytes, verified by
// their hashes. It omits messages that the archive does not hold. It returns archive.ErrDamaged if one of
// them is damaged.
func (d *DB) Originals(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, to int) ([]archive.Entry, error) {
	entries, err := d.Spans(ctx, workspace, []Span{{Lane: lane, From: from, To: to}})
	if err != nil {
		return nil, err
	}
	return entries[0], nil
}

// Span is a range of a lane's messages, To excluded.
type Span struct {
	Lane     uuid.UUID
	From, To int
}

// Spans is Originals for several spans at once. The results are in the order of the spans.
func (d *DB) Spans(ctx context.Context, workspace tenants.WorkspaceID, spans []Span) ([][]archive.Entry, error) {
	entries, stored := make([][]archive.Entry, len(spans)), make([][]storedBytes, len(spans))
	lanes, from, to := make([][16]byte, len(spans)), make([]int32, len(spans)), make([]int32, len(spans))
	for i, span := range spans {
		lanes[i] = span.Lane
		from[i], to[i] = int32(min(span.From, math.MaxInt32)), int32(min(span.To, math.MaxInt32)) //nolint:gosec // bounded
	}
	err := batchdb.ForEach(ctx, batchdb.Of(d.runner, workspace), func(row pgx.CollectableRow) error {
		span, entry, one, err := scanOriginal(row)
		if err != nil {
			return err
		}
		entries[span], stored[span] = append(entries[span], entry), append(stored[span], one)
		return nil
	}, sqlOriginals, workspace, lanes, from, to)
	if err != nil {
		return nil, fmt.Errorf("messages of %d spans from %d of lane %s: %w", len(spans), spans[0].From, spans[0].Lane, err)
	}
	var all []*storedBytes
	for i := range stored {
		for j := range stored[i] {
			all = append(all, &stored[i][j])
		}
	}
	if err := d.originals(ctx, workspace, all); err != nil {
		return nil, err
	}
	for i := range stored {
		for j := range stored[i] {
			if err := stored[i][j].damage; err != nil {
				return nil, fmt.Errorf("message %d of lane %s: %w", entries[i][j].Index, spans[i].Lane, err) //nolint:gosec // a list for each span
			}
			entries[i][j].Raw = stored[i][j].raw
		}
	}
	return entries, nil
}

// Object returns a message by its hash alone. It returns archive.ErrNotFound or archive.ErrDamaged.
func (d *DB) Object(ctx context.Context, workspace tenants.WorkspaceID, hash conversation.Hash) ([]byte, error) {
	stored := storedBytes{hash: hash}
	err := batchdb.Row(ctx, batchdb.Of(d.runner, workspace), archive.ErrNotFound, []any{&stored.size, &stored.form, &stored.place, &stored.segment, &stored.start, &stored.length, &stored.bytes}, sqlObject, workspace, hash[:])
	if err != nil {
		return nil, fmt.Errorf("message %x: %w", hash[:6], err)
	}
	if err := d.originals(ctx, workspace, []*storedBytes{&stored}); err != nil {
		return nil, fmt.Errorf("message %x: %w", hash[:6], err)
	}
	if stored.damage != nil {
		return nil, fmt.Errorf("message %x: %w", hash[:6], stored.damage)
	}
	return stored.raw, nil
}

// scanOriginal reads the span's index, an entry without its bytes, and how they are stored.
func scanOriginal(row pgx.CollectableRow) (span int, entry archive.Entry, stored storedBytes, err error) {
	var hash []byte
	err = row.Scan(&span, &entry.Index, &hash, &entry.Role, &entry.Tokens, &entry.StoredAt, &entry.Size,
		&stored.form, &stored.place, &stored.segment, &stored.start, &stored.length, &stored.bytes)
	if err != nil {
		return 0, archive.Entry{}, storedBytes{}, err
	}
	entry.Hash = conversation.Hash(hash)
	stored.hash, stored.size = entry.Hash, entry.Size
	return span - 1, entry, stored, nil
}

var _ archive.Reader = (*DB)(nil)
