package archivedb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
)

// Segments configures how originals are packed into objects of a bucket.
type Segments struct {
	// Bytes and Originals bound a segment, except its last original, so that a large one may have its own
	// segment.
	Bytes, Originals int

	// Few and Wait determine when a partial segment is written: once more than Few originals wait, or the
	// oldest has waited for Wait.
	Few  int
	Wait time.Duration

	// Dead is how long dead bytes stay in a segment that is more than half live.
	Dead time.Duration

	// Keep is how long a segment without live originals stays in the bucket, so that a reader that has just
	// looked up an original still finds it, and so does a database restored to an earlier moment.
	Keep time.Duration
}

// DefaultSegments returns the default configuration. Deleted originals are gone from the bucket within 18
// hours.
func DefaultSegments() Segments {
	return Segments{Bytes: 8 << 20, Originals: 4096, Few: 1024, Wait: 15 * time.Minute, Dead: 12 * time.Hour, Keep: 6 * time.Hour}
}

// turnSegments is how many segments of a workspace are written in one turn, in parallel.
const turnSegments = 4

// The statements of segments. The state of a segment is 0 while it is written, 1 while it is live, and 2 once
// it is retired. It is written under a new name that no row refers to until all of it is known to be in the
// bucket. No rows are locked in the meantime: a row that has changed is skipped, and its bytes in the segment
// are dead.
const (
	sqlHere = `SELECT hash, octet_length(bytes), created_at <= now() - make_interval(secs => $4) FROM archive_objects
		WHERE workspace_id = $1 AND place = 0 AND hash <> ALL($3::bytea[]) ORDER BY created_at LIMIT $2`
	sqlHereBytes = `SELECT stored.hash, size, encoding, bytes FROM unnest($2::bytea[]) WITH ORDINALITY AS wanted (hash, turn)
		CROSS JOIN LATERAL (SELECT hash, size, encoding, bytes FROM archive_objects WHERE workspace_id = $1 AND hash = wanted.hash AND place = 0 OFFSET 0) stored
		ORDER BY turn`
	sqlNewSegment = `INSERT INTO archive_segments (workspace_id, id) VALUES ($1, $2)`
	// Originals sent again, which are back in the database, no longer belong to their former segments.
	sqlLeft  = `SELECT DISTINCT segment_id FROM archive_objects WHERE workspace_id = $1 AND hash = ANY($2::bytea[]) AND place = 0 AND segment_id IS NOT NULL`
	sqlMoved = `UPDATE archive_objects o SET place = 1, bytes = NULL, encoding = t.encoding, segment_id = $2, start = t.start, length = t.length
		FROM unnest($3::bytea[], $4::smallint[], $5::int[], $6::int[]) AS t (hash, encoding, start, length)
		WHERE o.workspace_id = $1 AND o.hash = t.hash AND o.place = 0`
	sqlCopied = `UPDATE archive_objects o SET segment_id = $2, start = t.start, length = t.length
		FROM unnest($3::bytea[], $4::smallint[], $5::int[], $6::int[]) AS t (hash, encoding, start, length)
		WHERE o.workspace_id = $1 AND o.hash = t.hash AND o.place <> 0 AND o.segment_id = ANY($7::uuid[])`
	sqlWritten = `UPDATE archive_segments SET state = 1, bytes = $3, live = $3 WHERE workspace_id = $1 AND id = $2 AND state = 0`
	// Live bytes are always counted from the rows, so that the figure is correct after any failure.
	sqlCount = `UPDATE archive_segments s SET live = counted.live, dead_since = CASE WHEN counted.live < s.bytes THEN coalesce(s.dead_since, now()) END
		FROM (SELECT id, (SELECT coalesce(sum(o.length), 0) FROM archive_objects o WHERE o.workspace_id = $1 AND o.segment_id = wanted.id AND o.place = 1) AS live
			FROM unnest($2::uuid[]) AS wanted (id)) counted
		WHERE s.workspace_id = $1 AND s.id = counted.id AND s.state = 1`
	sqlForget = `WITH gone AS (
			DELETE FROM archive_objects WHERE workspace_id = $1 AND ctid = ANY(ARRAY(
				SELECT ctid FROM archive_objects WHERE workspace_id = $1 AND place = 2 LIMIT $2 FOR UPDATE SKIP LOCKED))
			RETURNING segment_id
		) SELECT DISTINCT segment_id FROM gone WHERE segment_id IS NOT NULL`
	// Its writer may still be running, and must not refer to a segment that is about to be deleted.
	sqlAbandon = `UPDATE archive_segments SET state = 2, retired_at = '-infinity' WHERE workspace_id = $1 AND state = 0 RETURNING id`
	sqlDrop    = `DELETE FROM archive_segments s WHERE workspace_id = $1 AND id = $2 AND state <> 1
		AND NOT EXISTS (SELECT FROM archive_objects o WHERE o.workspace_id = $1 AND o.segment_id = $2 AND o.place = 1)`
)

// packed is an original on its way into a segment.
type packed struct {
	hash    conversation.Hash
	form    encoding
	content []byte
}

// move moves due originals into some segments, and reports whether there may be more.
func (p *pass) move(ctx context.Context) (more bool, err error) {
	batches, more, err := p.due(ctx)
	if err != nil || len(batches) == 0 {
		return false, err
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, hashes := range batches {
		group.Go(func() error {
			moved, damaged, err := p.moveSegment(ctx, hashes)
			mu.Lock()
			defer mu.Unlock()
			p.moved += moved
			p.damaged = append(p.damaged, damaged...)
			return err
		})
	}
	return more, group.Wait()
}

// due returns the originals of the next segments, the oldest first.
func (p *pass) due(ctx context.Context) (batches [][][]byte, more bool, err error) {
	var hashes [][]byte
	size, rows, late := 0, 0, false
	limit := turnSegments*p.Segments.Originals + 1
	err = batchdb.ForEach(ctx, batchdb.Of(p.runner, p.workspace), func(row pgx.CollectableRow) error {
		var hash []byte
		var length int
		var waited bool
		if err := row.Scan(&hash, &length, &waited); err != nil {
			return err
		}
		rows++
		if len(batches) == turnSegments {
			more = true
			return nil
		}
		hashes, size, late = append(hashes, hash), size+length, late || waited
		if size >= p.Segments.Bytes || len(hashes) >= p.Segments.Originals {
			batches, hashes, size, late = append(batches, hashes), nil, 0, false
		}
		return nil
	}, sqlHere, p.workspace, limit, p.damaged, p.Segments.Wait.Seconds())
	if len(hashes) > 0 && (late || len(hashes) > p.Segments.Few) {
		batches = append(batches, hashes)
	}
	return batches, more, err
}

// moveSegment moves originals into a segment.
func (p *pass) moveSegment(ctx context.Context, hashes [][]byte) (moved int, damaged [][]byte, err error) {
	var originals []storedBytes
	id := uuid.New()
	err = p.runner.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		if err := batchdb.Later(tx, sqlNewSegment, p.workspace, id); err != nil {
			return err
		}
		return batchdb.Each(tx, func(row pgx.CollectableRow) error {
			var one storedBytes
			var hash []byte
			err := row.Scan(&hash, &one.size, &one.form, &one.bytes)
			if err == nil {
				one.hash = conversation.Hash(hash)
				originals = append(originals, one)
			}
			return err
		}, sqlHereBytes, p.workspace, hashes)
	})
	if err != nil {
		return 0, nil, err
	}
	parts := make([]packed, 0, len(originals))
	for i := range originals {
		part, err := p.part(&originals[i])
		if errors.Is(err, archive.ErrDamaged) {
			damaged = append(damaged, originals[i].hash[:])
			continue
		}
		if err != nil {
			return 0, damaged, err
		}
		parts = append(parts, part)
	}
	moved, err = p.write(ctx, id, parts, sqlMoved)
	return moved, damaged, err
}

// part verifies an original and returns its form for a segment.
func (p *pass) part(original *storedBytes) (packed, error) {
	if _, err := p.packer.restore(p.key, original.form, original.bytes, original.hash, original.size); err != nil {
		return packed{}, fmt.Errorf("object %x: %w", original.hash[:6], err)
	}
	return packed{original.hash, original.form, original.bytes}, nil
}

// write writes a segment, reads it back, and makes the rows of its originals refer to it, by a statement that
// checks that they are unchanged. It returns the number of rows. The database only drops bytes that the
// bucket is known to hold.
func (p *pass) write(ctx context.Context, id uuid.UUID, parts []packed, statement string, arguments ...any) (int, error) {
	var content []byte
	hashes, forms := make([][]byte, len(parts)), make([]int16, len(parts))
	starts, lengths := make([]int32, len(parts)), make([]int32, len(parts))
	for i := range parts {
		hashes[i], forms[i] = parts[i].hash[:], int16(parts[i].form)
		starts[i], lengths[i] = int32(len(content)), int32(len(parts[i].content)) //nolint:gosec // bounded by segments
		content = append(content, parts[i].content...)
	}
	if len(parts) > 0 {
		if err := p.upload(ctx, id, content); err != nil {
			return 0, err
		}
	}
	changed := int64(0)
	err := p.runner.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		left, err := segmentsOf(tx, sqlLeft, p.workspace, hashes)
		if err != nil {
			return err
		}
		pool := tx.Statement.ConnPool
		if result, err := pool.ExecContext(ctx, sqlWritten, p.workspace, id, len(content)); err != nil || isNone(result.RowsAffected()) {
			return errors.Join(err, errAbandoned)
		}
		result, err := pool.ExecContext(ctx, statement, append([]any{p.workspace, id, hashes, forms, starts, lengths}, arguments...)...)
		if err != nil {
			return err
		}
		if changed, err = result.RowsAffected(); err != nil {
			return err
		}
		if int(changed) < len(parts) || len(parts) == 0 {
			left = append(left, id)
		}
		_, err = pool.ExecContext(ctx, sqlCount, p.workspace, left)
		return err
	})
	if errors.Is(err, errAbandoned) { // the other process may have deleted it before the upload ended
		err = errors.Join(err, p.bucket.Delete(ctx, segmentName(p.key, p.workspace, id)))
	}
	return int(changed), err
}

// errAbandoned says that another process treated a segment as left over from a killed process.
var errAbandoned = errors.New("another process has taken the workspace over")

func isNone(rows int64, err error) bool { return err == nil && rows == 0 }

func (p *pass) upload(ctx context.Context, id uuid.UUID, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, moverTimeout)
	defer cancel()
	name := segmentName(p.key, p.workspace, id)
	if err := p.bucket.Put(ctx, name, content); err != nil {
		return fmt.Errorf("write segment %s: %w", id, err)
	}
	written, err := p.bucket.Range(ctx, name, 0, len(content))
	if err != nil {
		return fmt.Errorf("read segment %s back: %w", id, err)
	}
	if !bytes.Equal(written, content) {
		return fmt.Errorf("segment %s in the bucket is not what was written", id)
	}
	return nil
}

// abandon deletes the segments of writers that failed, were killed, or take too long. No row refers to them,
// now or later. A segment that cannot be deleted yet counts as retired.
func (p *pass) abandon(ctx context.Context) error {
	left, err := batchdb.Read(ctx, batchdb.Of(p.runner, p.workspace), func(tx *gorm.DB) ([][16]byte, error) { return segmentsOf(tx, sqlAbandon, p.workspace) })
	for _, id := range left {
		if err == nil {
			err = p.drop(ctx, id)
		}
	}
	return batchdb.Wrapf(err, "delete abandoned segments")
}

// forget deletes the rows of some unreferenced originals, which makes their bytes dead.
func (p *pass) forget(ctx context.Context) (more bool, err error) {
	err = p.runner.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		gone := 0
		if err := tx.Statement.ConnPool.QueryRowContext(ctx, sqlDoomedRows, p.workspace, eraseBatch).Scan(&gone); err != nil {
			return err
		}
		more = gone == eraseBatch
		left, err := segmentsOf(tx, sqlForget, p.workspace, eraseBatch)
		if err != nil || len(left) == 0 {
			return err
		}
		_, err = tx.Statement.ConnPool.ExecContext(ctx, sqlCount, p.workspace, left)
		return err
	})
	return more, err
}

// sqlDoomedRows counts the rows that forget will delete.
const sqlDoomedRows = `SELECT count(*) FROM (SELECT FROM archive_objects WHERE workspace_id = $1 AND place = 2 LIMIT $2) doomed`

// segmentsOf returns the segments that a statement finds.
func segmentsOf(tx *gorm.DB, statement string, arguments ...any) ([][16]byte, error) {
	segments := [][16]byte{}
	err := batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var id uuid.UUID
		if err := row.Scan(&id); err != nil {
			return err
		}
		segments = append(segments, id)
		return nil
	}, statement, arguments...)
	return segments, err
}

// drop deletes a segment from the bucket, and then its row.
func (p *pass) drop(ctx context.Context, id uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, moverTimeout)
	defer cancel()
	if err := p.bucket.Delete(ctx, segmentName(p.key, p.workspace, id)); err != nil {
		return fmt.Errorf("delete segment %s: %w", id, err)
	}
	return p.exec(ctx, p.workspace, sqlDrop, p.workspace, id)
}
