package archivedb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
)

const (
	// moverBatch and moverBytes bound the objects moved in one transaction.
	moverBatch = 64
	moverBytes = 32 << 20
	// moverTimeout bounds one operation on the bucket.
	moverTimeout = 20 * time.Second
)

// The statements of the mover. Rows stay locked while their bytes are written to
// or deleted from the bucket, so that nobody deletes or brings back an object in
// the meantime; other movers skip them.
const (
	sqlWorkspaces = `SELECT workspace_id FROM workspaces ORDER BY workspace_id`
	sqlHere       = `SELECT hash, size, encoding, bare, bytes FROM archive_objects
		WHERE workspace_id = $1 AND place = 0 AND hash <> ALL($3::bytea[])
		ORDER BY created_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlMoved = `UPDATE archive_objects SET place = 1, bytes = NULL, encoding = encoding | $3::smallint, bare = ($3::smallint = 0)
		WHERE workspace_id = $1 AND hash = ANY($2::bytea[])`
	sqlDoomed = `SELECT hash, bare FROM archive_objects
		WHERE workspace_id = $1 AND place = 2 LIMIT $2 FOR UPDATE SKIP LOCKED`
	sqlGone            = `DELETE FROM archive_objects WHERE workspace_id = $1 AND hash = ANY($2::bytea[])`
	sqlMoverWaitsSince = `SELECT archive_waits_since()`
	sqlPending         = `SELECT count(*) FROM archive_objects WHERE workspace_id = $1 AND place = 0`
)

// Mover moves archived bytes from the database, where they became durable, into
// a bucket, seals what was stored before there were keys, and links the chains of
// lanes that have none. While the bucket is down the bytes stay where they are;
// without a bucket nothing is moved.
type Mover struct {
	door   Door
	bucket archive.Bucket // nil: none
	packer packer

	// Keys are the archive's, nil where it seals nothing.
	Keys *archive.Keys
}

// NewMover returns a Mover. The bucket may be nil.
func NewMover(door Door, bucket archive.Bucket) *Mover {
	return &Mover{door: door, bucket: bucket, packer: newPacker()}
}

// Pass moves everything that is still in the database into the bucket, deletes
// from it what nobody refers to any more, and returns how many objects it moved.
// It ends at the first failure of the bucket. Objects that are damaged stay where
// they are; the pass goes on and ends with archive.ErrDamaged.
func (m *Mover) Pass(ctx context.Context) (int, error) {
	workspaces, err := m.workspaces(ctx)
	if err != nil {
		return 0, err
	}
	total, damaged := 0, 0
	for _, workspace := range workspaces {
		pass := pass{Mover: m, workspace: workspace, damaged: [][]byte{}}
		err := pass.prepare(ctx)
		if err == nil {
			err = pass.run(ctx)
		}
		total += pass.moved
		damaged += len(pass.damaged)
		if err != nil {
			return total, fmt.Errorf("workspace %s: %w", workspace, err)
		}
	}
	if damaged > 0 {
		return total, fmt.Errorf("%d objects: %w", damaged, archive.ErrDamaged)
	}
	return total, nil
}

// Pending returns how many objects of all workspaces are still in the database.
func (m *Mover) Pending(ctx context.Context) (int, error) {
	workspaces, err := m.workspaces(ctx)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, workspace := range workspaces {
		var pending int
		err := m.door.InTenant(ctx, workspace, func(tx *gorm.DB) error {
			return tx.Statement.ConnPool.QueryRowContext(ctx, sqlPending, workspace).Scan(&pending)
		})
		if err != nil {
			return 0, fmt.Errorf("pending objects of workspace %s: %w", workspace, err)
		}
		total += pending
	}
	return total, nil
}

// WaitsSince returns since when the oldest original waits to be moved; the zero time if none
// waits, or there is no bucket to move it to. An original that is damaged waits for ever.
func (m *Mover) WaitsSince(ctx context.Context) (time.Time, error) {
	if m.bucket == nil {
		return time.Time{}, nil
	}
	return waitsSince(ctx, m.door, sqlMoverWaitsSince)
}

// workspaces returns all workspaces. It is the one query that no workspace asks.
func (m *Mover) workspaces(ctx context.Context) ([]uuid.UUID, error) {
	var all []uuid.UUID
	err := m.door.AsWorker(ctx, func(tx *gorm.DB) error {
		rows, err := tx.Statement.ConnPool.QueryContext(ctx, sqlWorkspaces)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var workspace uuid.UUID
			if err := rows.Scan(&workspace); err != nil {
				return err
			}
			all = append(all, workspace)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return all, nil
}

// pass is one pass over a workspace.
type pass struct {
	*Mover

	workspace uuid.UUID
	key       *archive.Key // nil: nothing is sealed
	moved     int
	damaged   [][]byte // hashes
}

func (p *pass) run(ctx context.Context) error {
	for _, step := range p.steps() {
		for more := true; more; {
			var err error
			if more, err = step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pass) steps() []func(context.Context) (more bool, err error) {
	steps := []func(context.Context) (bool, error){p.link}
	if p.bucket != nil {
		steps = append(steps, p.move, p.delete)
	}
	if p.Keys != nil {
		steps = append(steps, p.seal)
	}
	return steps
}

// move moves some objects. What it moved before the bucket failed stays moved.
func (p *pass) move(ctx context.Context) (more bool, err error) {
	var failure error
	err = p.door.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		objects, cut, err := objectsHere(tx, p.workspace, p.damaged)
		if err != nil {
			return err
		}
		more = cut
		var stored outcome
		stored, failure = each(ctx, objects, p.store)
		p.damaged = append(p.damaged, stored.damaged...)
		if len(stored.done) == 0 {
			return nil
		}
		if _, err := tx.Statement.ConnPool.ExecContext(ctx, sqlMoved, p.workspace, stored.done, int16(p.sealing())); err != nil {
			return err
		}
		p.moved += len(stored.done)
		return nil
	})
	return more, errors.Join(err, failure)
}

// delete deletes some objects that nobody refers to any more.
func (p *pass) delete(ctx context.Context) (more bool, err error) {
	var failure error
	err = p.door.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		objects, err := objectsDoomed(tx, p.workspace)
		if err != nil {
			return err
		}
		more = len(objects) == moverBatch
		var deleted outcome
		deleted, failure = each(ctx, objects, func(ctx context.Context, object storedBytes) error {
			return p.deleteObject(ctx, object)
		})
		if len(deleted.done) == 0 {
			return nil
		}
		_, err = tx.Statement.ConnPool.ExecContext(ctx, sqlGone, p.workspace, deleted.done)
		return err
	})
	return more, errors.Join(err, failure)
}

// store writes an object to the bucket, sealed, and reads it back: the database
// lets go only of what the bucket is known to hold.
func (p *pass) store(ctx context.Context, object storedBytes) error {
	raw, err := p.packer.restore(p.key, object.form, object.bytes, object.hash, object.size)
	if err != nil {
		return fmt.Errorf("object %x: %w", object.hash[:6], err)
	}
	if err := p.write(ctx, object, raw); err != nil {
		return err
	}
	if object.bare && p.key != nil {
		return p.deleteBare(ctx, object)
	}
	return nil
}

// write puts a message into the bucket, in the form it has or sealed, and reads it
// back.
func (p *pass) write(ctx context.Context, object storedBytes, raw []byte) error {
	form, content := object.form, object.bytes
	if content == nil || form&sealed != p.sealing() {
		form, content = p.packer.pack(raw)
		_, content = seal(p.key, form, content, object.hash)
	}
	name := objectName(p.key, p.workspace, object.hash)
	if err := p.bucket.Put(ctx, name, content); err != nil && !errors.Is(err, archive.ErrTaken) {
		return fmt.Errorf("write object %x: %w", object.hash[:6], err)
	}
	written, err := p.bucket.Get(ctx, name)
	if err != nil {
		return fmt.Errorf("read object %x back: %w", object.hash[:6], err)
	}
	if bytes.Equal(written, content) {
		return nil
	}
	if _, err := p.packer.restoreAny(p.key, written, object.hash, object.size); err != nil {
		return fmt.Errorf("object %x in the bucket: %w", object.hash[:6], err)
	}
	return nil
}

// outcome is what became of some objects, by their hashes.
type outcome struct {
	done    [][]byte
	damaged [][]byte
}

// each does something with objects, several at once. It returns the first failure
// that is not a damaged object; after one it starts no more.
func each(ctx context.Context, objects []storedBytes, do func(context.Context, storedBytes) error) (outcome, error) {
	var mu sync.Mutex
	var outcome outcome
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchesAtOnce)
	for _, object := range objects {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			ctx, cancel := context.WithTimeout(ctx, moverTimeout)
			defer cancel()
			err := do(ctx, object)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, archive.ErrDamaged):
				outcome.damaged = append(outcome.damaged, object.hash[:])
				return nil
			case err == nil:
				outcome.done = append(outcome.done, object.hash[:])
			}
			return err
		})
	}
	err := group.Wait()
	return outcome, err
}

// objectsHere returns some objects whose bytes are in the database, the oldest
// first, and whether there may be more.
func objectsHere(tx *gorm.DB, workspace uuid.UUID, except [][]byte) (objects []storedBytes, more bool, err error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlHere, workspace, moverBatch, except)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		var object storedBytes
		var hash []byte
		if err := rows.Scan(&hash, &object.size, &object.form, &object.bare, &object.bytes); err != nil {
			return nil, false, err
		}
		object.hash, object.place = conversation.Hash(hash), here
		objects = append(objects, object)
		if size += len(object.bytes); size >= moverBytes {
			return objects, true, nil
		}
	}
	return objects, len(objects) == moverBatch, rows.Err()
}

func objectsDoomed(tx *gorm.DB, workspace uuid.UUID) ([]storedBytes, error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlDoomed, workspace, moverBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var objects []storedBytes
	for rows.Next() {
		var hash []byte
		var bare bool
		if err := rows.Scan(&hash, &bare); err != nil {
			return nil, err
		}
		objects = append(objects, storedBytes{hash: conversation.Hash(hash), place: doomed, bare: bare})
	}
	return objects, rows.Err()
}
