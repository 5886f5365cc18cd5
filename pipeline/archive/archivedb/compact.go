package archivedb

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
)

// The statements of a compaction.
const (
	sqlWasteful = `SELECT id, live FROM archive_segments WHERE workspace_id = $1 AND state = 1 AND dead_since IS NOT NULL
			AND (live <= bytes / 2 OR dead_since <= now() - make_interval(secs => $2)) AND id <> ALL($3::uuid[])
		ORDER BY live LIMIT 256`
	sqlSegmentRows = `SELECT hash, size, encoding, place, segment_id, start, length FROM archive_objects
		WHERE workspace_id = $1 AND segment_id = ANY($2::uuid[]) AND place = 1 ORDER BY segment_id, start`
	// A dead original that is sent again is stored in the database, so the content of a segment never becomes
	// live again.
	sqlRetire = `UPDATE archive_segments s SET state = 2, live = 0, retired_at = now() WHERE workspace_id = $1 AND id = ANY($2::uuid[]) AND state = 1
		AND NOT EXISTS (SELECT FROM archive_objects o WHERE o.workspace_id = $1 AND o.segment_id = s.id AND o.place = 1)`
	sqlRetired   = `SELECT id FROM archive_segments WHERE workspace_id = $1 AND state = 2 AND retired_at <= now() - make_interval(secs => $2)`
	sqlRetireAll = `UPDATE archive_segments SET state = 2, live = 0, retired_at = now() WHERE workspace_id = $1 AND state = 1`
)

// compact copies the live originals of segments with too many dead bytes into a new segment,
// and retires the old ones. It reports whether there may be more.
func (p *pass) compact(ctx context.Context) (more bool, err error) {
	var wasteful [][16]byte
	live := 0
	err = batchdb.ForEach(ctx, batchdb.Of(p.runner, p.workspace), func(row pgx.CollectableRow) error {
		var id uuid.UUID
		var bytes int
		if err := row.Scan(&id, &bytes); err != nil {
			return err
		}
		if live+bytes > p.Segments.Bytes && len(wasteful) > 0 {
			more = true
			return nil
		}
		wasteful, live = append(wasteful, id), live+bytes
		return nil
	}, sqlWasteful, p.workspace, p.Segments.Dead.Seconds(), p.unreadable())
	if err != nil || len(wasteful) == 0 {
		return false, err
	}
	if live > 0 {
		if err := p.rewrite(ctx, wasteful); err != nil {
			return false, err
		}
	}
	return more, p.exec(ctx, p.workspace, sqlRetire, p.workspace, wasteful)
}

// rewrite copies the live originals of segments into another one.
func (p *pass) rewrite(ctx context.Context, segments [][16]byte) error {
	var stored []*storedBytes
	id := uuid.New()
	err := p.runner.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		if err := batchdb.Later(tx, sqlNewSegment, p.workspace, id); err != nil {
			return err
		}
		return batchdb.Each(tx, func(row pgx.CollectableRow) error {
			one := new(storedBytes)
			var hash []byte
			err := row.Scan(&hash, &one.size, &one.form, &one.place, &one.segment, &one.start, &one.length)
			if err == nil {
				one.hash = conversation.Hash(hash)
				stored = append(stored, one)
			}
			return err
		}, sqlSegmentRows, p.workspace, segments)
	})
	if err != nil {
		return err
	}
	if err := fetch(ctx, p.bucket, p.key, p.workspace, stored); err != nil {
		return err
	}
	parts := make([]packed, 0, len(stored))
	for _, one := range stored {
		damage := one.damage
		var part packed
		if damage == nil {
			part, damage = p.part(one)
		}
		switch {
		case errors.Is(damage, archive.ErrDamaged): // it stays in its segment, which is kept
			p.damaged = append(p.damaged, one.hash[:])
			p.kept = append(p.kept, one.segment.UUID)
			continue
		case damage != nil:
			return damage
		}
		parts = append(parts, part)
	}
	_, err = p.write(ctx, id, parts, sqlCopied, segments)
	return err
}

// unreadable returns the segments that this turn skips because they contain damage.
func (p *pass) unreadable() [][16]byte {
	if p.kept == nil {
		return [][16]byte{}
	}
	return p.kept
}

// retire deletes segments from the bucket that have had no live original for a time.
func (p *pass) retire(ctx context.Context, keep time.Duration) error {
	retired, err := batchdb.Read(ctx, batchdb.Of(p.runner, p.workspace), func(tx *gorm.DB) ([][16]byte, error) { return segmentsOf(tx, sqlRetired, p.workspace, keep.Seconds()) })
	for _, id := range retired {
		if err == nil {
			err = p.drop(ctx, id)
		}
	}
	return batchdb.Wrapf(err, "delete retired segments")
}
