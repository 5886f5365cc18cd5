package archivedb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

const (
	// moverBatch bounds the objects that one transaction seals, links or forgets.
	moverBatch = 64
	// moverTimeout bounds one operation on the bucket.
	moverTimeout = time.Minute
	// moverFor is how long a workspace is one process's: longer than a turn takes. What a
	// killed process was at, others go on with after it.
	moverFor = 10 * time.Minute
	// moverWorkers is how many workspaces one process works on at once.
	moverWorkers = 4
)

// The statements of the mover.
const (
	sqlWorkspaces = `SELECT workspace_id FROM workspaces ORDER BY workspace_id`
	// Whether a workspace is nobody's and has something to move, to delete, to link or to seal.
	sqlMoverClaim = `INSERT INTO archive_movers (workspace_id, until) SELECT $1, now() + make_interval(secs => $2)
		WHERE $3 AND EXISTS (SELECT FROM archive_objects WHERE workspace_id = $1 AND place = 0 AND created_at <= now() - make_interval(secs => $4))
			OR $3 AND EXISTS (SELECT FROM archive_objects WHERE workspace_id = $1 AND place = 0 OFFSET $5)
			OR $3 AND EXISTS (SELECT FROM archive_objects WHERE workspace_id = $1 AND place = 2)
			OR $3 AND EXISTS (SELECT FROM archive_segments WHERE workspace_id = $1 AND (state <> 1 OR dead_since IS NOT NULL))
			OR EXISTS (SELECT FROM archive_objects WHERE workspace_id = $1 AND encoding < 2 AND place = 0)
			OR EXISTS (SELECT FROM lanes l WHERE l.workspace_id = $1 AND l.chain_link IS NULL
				AND EXISTS (SELECT FROM archive_entries e WHERE e.workspace_id = $1 AND e.lane_id = l.id))
		ON CONFLICT (workspace_id) DO UPDATE SET until = excluded.until WHERE archive_movers.until <= now()`
	sqlMoverRelease    = `UPDATE archive_movers SET until = '-infinity' WHERE workspace_id = $1`
	sqlMoverWaitsSince = `SELECT archive_waits_since()`
	sqlVolume          = `SELECT (SELECT count(*) FROM archive_objects WHERE workspace_id = $1 AND place = 0), count(*),
		coalesce(sum(bytes), 0), coalesce(sum(bytes - live), 0) FROM archive_segments WHERE workspace_id = $1 AND state <> 0`
)

// Mover moves archived bytes from the database, where they became durable, into segments of a
// bucket, seals what was stored before there were keys, and links the chains of
// lanes that have none. While the bucket is down the bytes stay where they are;
// without a bucket nothing is moved. Any number of processes may do it at once: each workspace
// is one's at a time.
type Mover struct {
	door   batchdb.TxRunner
	bucket archive.Bucket // nil if none
	packer packer

	// Keys are the archive's, nil where it seals nothing.
	Keys *archive.Keys

	// Segments says how originals are packed.
	Segments Segments
}

// NewMover returns a Mover with the default segments. The bucket may be nil.
func NewMover(door batchdb.TxRunner, bucket archive.Bucket) *Mover {
	return &Mover{door: door, bucket: bucket, packer: newPacker(), Segments: DefaultSegments()}
}

// Pass moves what is due from the database into the bucket, deletes
// from it what nobody refers to any more, and returns how many objects it moved. Workspaces
// take turns of a few segments each. The pass ends at the first failure of the bucket. Objects
// that are damaged stay where they are; the pass goes on and ends with archive.ErrDamaged.
func (m *Mover) Pass(ctx context.Context) (int, error) {
	waiting, err := m.workspaces(ctx)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	total := 0
	var damage error
	for len(waiting) > 0 {
		var more []tenants.WorkspaceID
		turns, turn := errgroup.WithContext(ctx)
		turns.SetLimit(moverWorkers)
		for _, workspace := range waiting {
			turns.Go(func() error {
				if turn.Err() != nil {
					return turn.Err()
				}
				moved, again, err := m.turn(turn, workspace)
				mu.Lock()
				defer mu.Unlock()
				total += moved
				if again {
					more = append(more, workspace)
				}
				if errors.Is(err, archive.ErrDamaged) {
					damage, err = fmt.Errorf("workspace %s: %w", workspace, err), nil
				}
				if err != nil {
					return fmt.Errorf("workspace %s: %w", workspace, err)
				}
				return nil
			})
		}
		if err := turns.Wait(); err != nil {
			return total, err
		}
		waiting = more
	}
	return total, damage
}

// turn does some of the work of a workspace that no other process has claimed, and reports
// whether there may be more.
func (m *Mover) turn(ctx context.Context, workspace tenants.WorkspaceID) (moved int, more bool, err error) {
	claimed, err := m.claim(ctx, workspace)
	if err != nil || !claimed {
		return 0, false, err
	}
	defer func() {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTimeout)
		defer cancel()
		err = errors.Join(err, m.exec(release, workspace, sqlMoverRelease, workspace))
	}()
	pass := pass{Mover: m, workspace: workspace, damaged: [][]byte{}}
	if err := pass.prepare(ctx); err != nil {
		return 0, false, err
	}
	more, err = pass.run(ctx)
	if err == nil && len(pass.damaged) > 0 {
		err = fmt.Errorf("%d objects: %w", len(pass.damaged), archive.ErrDamaged)
	}
	return pass.moved, more && err == nil, err
}

func (m *Mover) claim(ctx context.Context, workspace tenants.WorkspaceID) (bool, error) {
	var claimed int64
	err := m.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		result, err := tx.Statement.ConnPool.ExecContext(ctx, sqlMoverClaim, workspace, moverFor.Seconds(),
			m.bucket != nil, m.Segments.Wait.Seconds(), m.Segments.Few)
		if err != nil {
			return err
		}
		claimed, err = result.RowsAffected()
		return err
	})
	return claimed > 0, err
}

func (m *Mover) exec(ctx context.Context, workspace tenants.WorkspaceID, statement string, arguments ...any) error {
	return m.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, statement, arguments...)
		return err
	})
}

// Volume is how much of all workspaces lies where.
type Volume struct {
	Pending  int   // originals that are still in the database
	Segments int   // in the bucket
	Bytes    int64 // of the segments
	Dead     int64 // of those, of originals that are not there any more
}

// Volume returns how much lies where.
func (m *Mover) Volume(ctx context.Context) (Volume, error) {
	workspaces, err := m.workspaces(ctx)
	if err != nil {
		return Volume{}, err
	}
	var all Volume
	for _, workspace := range workspaces {
		var one Volume
		err := m.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
			row := tx.Statement.ConnPool.QueryRowContext(ctx, sqlVolume, workspace)
			return row.Scan(&one.Pending, &one.Segments, &one.Bytes, &one.Dead)
		})
		if err != nil {
			return Volume{}, fmt.Errorf("volume of workspace %s: %w", workspace, err)
		}
		all.Pending, all.Segments = all.Pending+one.Pending, all.Segments+one.Segments
		all.Bytes, all.Dead = all.Bytes+one.Bytes, all.Dead+one.Dead
	}
	return all, nil
}

// WaitsSince returns since when the oldest original has been due to be moved; the zero time if
// none is, or there is no bucket to move it to. An original that is damaged waits for ever.
func (m *Mover) WaitsSince(ctx context.Context) (time.Time, error) {
	if m.bucket == nil {
		return time.Time{}, nil
	}
	since, err := waitsSince(ctx, m.door, sqlMoverWaitsSince)
	if due := since.Add(m.Segments.Wait); err == nil && !since.IsZero() && due.Before(time.Now()) {
		return due, nil
	}
	return time.Time{}, err
}

// workspaces returns all workspaces. It is the one query that no workspace asks.
func (m *Mover) workspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	var all []tenants.WorkspaceID
	err := m.door.AsWorker(ctx, func(tx *gorm.DB) (err error) {
		all, err = batchdb.Rows(tx, pgx.RowTo[tenants.WorkspaceID], sqlWorkspaces)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return all, nil
}

// pass is one turn of a workspace.
type pass struct {
	*Mover

	workspace tenants.WorkspaceID
	key       *archive.Key // nil if nothing is sealed
	moved     int
	damaged   [][]byte   // hashes
	kept      [][16]byte // segments with something damaged
}

// run does what is short to its end, and moves and compacts some segments.
func (p *pass) run(ctx context.Context) (more bool, err error) {
	steps := []func(context.Context) (more bool, err error){p.link}
	if p.Keys != nil {
		steps = append(steps, p.seal)
	}
	if p.bucket != nil {
		steps = append(steps, p.abandon, p.forget)
	}
	for _, step := range steps {
		for again := true; again; {
			if again, err = step(ctx); err != nil {
				return false, err
			}
		}
	}
	if p.bucket == nil {
		return false, nil
	}
	moreToMove, err := p.move(ctx)
	if err != nil {
		return false, err
	}
	moreDead, err := p.compact(ctx)
	if err != nil {
		return false, err
	}
	return moreToMove || moreDead, p.retire(ctx, p.Segments.Keep)
}
