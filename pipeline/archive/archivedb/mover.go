package archivedb

import (
	"cmp"
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
	// moverTimeout bounds one operation on the bucket.
	moverTimeout = time.Minute
	// moverFor is how long a process claims a workspace: longer than a turn takes. After it, other processes
	// continue the work of a killed process.
	moverFor = 10 * time.Minute
	// moverWorkers is how many workspaces one process works on in parallel.
	moverWorkers = 4
	// moverFailures is how many workspaces in a row may fail without a moved object before a pass ends.
	moverFailures = 8
)

// The statements of the mover.
const (
	sqlWorkspaces = `SELECT workspace_id FROM workspaces ORDER BY workspace_id`
	// Claims a workspace that is unclaimed and has objects to move or to delete.
	sqlMoverClaim = `INSERT INTO archive_movers (workspace_id, until) SELECT $1, now() + make_interval(secs => $2)
		WHERE EXISTS (SELECT FROM archive_objects WHERE workspace_id = $1 AND place = 0 AND created_at <= now() - make_interval(secs => $3))
			OR EXISTS (SELECT FROM archive_objects WHERE workspace_id = $1 AND place = 0 OFFSET $4)
			OR EXISTS (SELECT FROM archive_objects WHERE workspace_id = $1 AND place = 2)
			OR EXISTS (SELECT FROM archive_segments WHERE workspace_id = $1 AND (state <> 1 OR dead_since IS NOT NULL))
		ON CONFLICT (workspace_id) DO UPDATE SET until = excluded.until WHERE archive_movers.until <= now()`
	sqlMoverRelease    = `UPDATE archive_movers SET until = '-infinity' WHERE workspace_id = $1`
	sqlMoverWaitsSince = `SELECT archive_waits_since()`
	sqlVolume          = `SELECT (SELECT count(*) FROM archive_objects WHERE workspace_id = $1 AND place = 0), count(*),
		coalesce(sum(bytes), 0), coalesce(sum(bytes - live), 0) FROM archive_segments WHERE workspace_id = $1 AND state <> 0`
)

// Mover moves archived bytes from the database, where they became durable, into segments of a bucket. Bytes
// stay in the database while the bucket is down, and always without a bucket. Any number of processes may run
// it in parallel, since each workspace is claimed by one at a time.
type Mover struct {
	runner batchdb.TxRunner
	bucket archive.Bucket // optional
	packer packer
	keys   *archive.Keys

	// Segments configures how originals are packed.
	Segments Segments
}

// NewMover returns a Mover with the default segments. The bucket may be nil.
func NewMover(runner batchdb.TxRunner, keys *archive.Keys, bucket archive.Bucket) *Mover {
	return &Mover{runner: runner, bucket: bucket, packer: newPacker(), keys: keys, Segments: DefaultSegments()}
}

// Pass moves due objects from the database into the bucket, deletes unreferenced ones from the bucket, and
// returns how many it moved. Workspaces take turns of a few segments each. A failure for one does not stop
// the others, but the pass ends after moverFailures failures in a row, because the bucket itself is then
// failing. Damaged objects stay in place, and the pass continues and ends with archive.ErrDamaged.
func (m *Mover) Pass(ctx context.Context) (int, error) {
	if m.bucket == nil {
		return 0, nil
	}
	waiting, err := m.workspaces(ctx)
	if err != nil {
		return 0, err
	}
	var done passed
	for len(waiting) > 0 {
		var turns errgroup.Group
		turns.SetLimit(moverWorkers)
		for _, workspace := range waiting {
			turns.Go(func() error {
				if ctx.Err() == nil && done.goesOn() {
					moved, again, err := m.turn(ctx, workspace)
					done.note(workspace, moved, again, err)
				}
				return nil
			})
		}
		_ = turns.Wait() // done has the errors
		waiting, done.again = done.again, nil
	}
	return done.moved, cmp.Or(errors.Join(done.failures...), context.Cause(ctx), done.damage)
}

// passed is the progress of a pass. Its zero value is a new pass.
type passed struct {
	mu       sync.Mutex
	moved    int
	again    []tenants.WorkspaceID // they may have more
	failures []error
	inARow   int // failures since the last success
	damage   error
}

// goesOn reports whether other workspaces may still succeed.
func (p *passed) goesOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inARow < moverFailures
}

// note records the result of a workspace's turn.
func (p *passed) note(workspace tenants.WorkspaceID, moved int, again bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved += moved
	if moved > 0 {
		p.inARow = 0
	}
	switch {
	case again: // if it has failed, its last turn will report that
		p.again = append(p.again, workspace)
	case errors.Is(err, archive.ErrDamaged):
		p.damage = fmt.Errorf("workspace %s: %w", workspace, err)
	case err != nil:
		p.failures = append(p.failures, fmt.Errorf("workspace %s: %w", workspace, err))
		if moved == 0 {
			p.inARow++
		}
	}
}

// turn does some of the work of a workspace unless another process has claimed it, and reports whether there
// may be more.
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
	pass, err := m.newPass(ctx, workspace)
	if err != nil {
		return 0, false, err
	}
	more, err = pass.run(ctx)
	if err == nil && len(pass.damaged) > 0 {
		err = fmt.Errorf("%d objects: %w", len(pass.damaged), archive.ErrDamaged)
	}
	return pass.moved, more && (err == nil || pass.moved > 0), err
}

func (m *Mover) claim(ctx context.Context, workspace tenants.WorkspaceID) (bool, error) {
	claimed, err := batchdb.Changed(ctx, batchdb.Of(m.runner, workspace), sqlMoverClaim, workspace, moverFor.Seconds(),
		m.Segments.Wait.Seconds(), m.Segments.Few)
	return claimed > 0, err
}

func (m *Mover) exec(ctx context.Context, workspace tenants.WorkspaceID, statement string, arguments ...any) error {
	_, err := batchdb.Changed(ctx, batchdb.Of(m.runner, workspace), statement, arguments...)
	return err
}

// Volume is the size of all workspaces' bytes by location.
type Volume struct {
	Pending  int   // originals still in the database
	Segments int   // in the bucket
	Bytes    int64 // of the segments
	Dead     int64 // part of Bytes that belongs to deleted originals
}

// Volume returns the size of all workspaces' bytes by location.
func (m *Mover) Volume(ctx context.Context) (Volume, error) {
	workspaces, err := m.workspaces(ctx)
	if err != nil {
		return Volume{}, err
	}
	var all Volume
	for _, workspace := range workspaces {
		var one Volume
		err := m.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
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

// WaitsSince returns since when the oldest original has been due to be moved, or the zero time if no original
// is due or there is no bucket. A damaged original stays due indefinitely.
func (m *Mover) WaitsSince(ctx context.Context) (time.Time, error) {
	if m.bucket == nil {
		return time.Time{}, nil
	}
	since, err := waitsSince(ctx, m.runner, sqlMoverWaitsSince)
	if due := since.Add(m.Segments.Wait); err == nil && !since.IsZero() && due.Before(time.Now()) {
		return due, nil
	}
	return time.Time{}, err
}

// workspaces returns all workspaces. It is the only query that is not limited to a workspace.
func (m *Mover) workspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	all, err := batchdb.List(ctx, m.runner.AsWorker, pgx.RowTo[tenants.WorkspaceID], sqlWorkspaces)
	return all, batchdb.Wrapf(err, "list workspaces")
}

// pass is one turn of a workspace.
type pass struct {
	*Mover

	workspace tenants.WorkspaceID
	key       *archive.Key
	moved     int
	damaged   [][]byte   // hashes of damaged objects
	kept      [][16]byte // segments with damaged objects
}

func (m *Mover) newPass(ctx context.Context, workspace tenants.WorkspaceID) (*pass, error) {
	key, err := m.keys.Key(ctx, workspace)
	return &pass{Mover: m, workspace: workspace, key: key, damaged: [][]byte{}}, err
}

// run completes the short tasks, and moves and compacts some segments. A failed deletion from the bucket does
// not prevent moves to it.
func (p *pass) run(ctx context.Context) (more bool, err error) {
	left := p.abandon(ctx)
	for again := true; again; {
		if again, err = p.forget(ctx); err != nil {
			return false, errors.Join(left, err)
		}
	}
	moreToMove, err := p.move(ctx)
	if err != nil {
		return false, errors.Join(left, err)
	}
	moreDead, err := p.compact(ctx)
	if err != nil {
		return false, errors.Join(left, err)
	}
	return moreToMove || moreDead, errors.Join(left, p.retire(ctx, p.Segments.Keep))
}

// place is the location of an object's bytes. The values are stored in the database.
type place int16

const (
	here     place = 0 // in the database
	inBucket place = 1 // in a segment
	doomed   place = 2 // in a segment, but without references
)

// fetchesAtOnce is how many requests to a bucket run in parallel for one caller.
const fetchesAtOnce = 16

// errNoBucket says that bytes are in a bucket, but this process has no bucket.
var errNoBucket = errors.New("the bytes are in a bucket, and none is configured: set PALIMPSEST_BLOB_URL to it")
