package archivedb

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
)

// The statements that seal what was stored before there were keys. Rows stay
// locked while that is done; whoever else does the same skips them.
const (
	sqlUnsealed = `SELECT hash, size, encoding, place, bare, bytes FROM archive_objects
		WHERE workspace_id = $1 AND (encoding < 2 OR bare) AND place <> 2 AND hash <> ALL($3::bytea[])
		LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealedHere   = `UPDATE archive_objects SET encoding = $3, bytes = $4 WHERE workspace_id = $1 AND hash = $2`
	sqlSealedBucket = `UPDATE archive_objects SET encoding = encoding | 2, bare = false
		WHERE workspace_id = $1 AND hash = ANY($2::bytea[])`
	sqlUnlinked = `SELECT l.id FROM lanes l WHERE l.workspace_id = $1 AND l.chain_link IS NULL
		AND EXISTS (SELECT FROM archive_entries e WHERE e.workspace_id = $1 AND e.lane_id = l.id) ORDER BY l.id LIMIT $2`
)

// sealing is what is added to the encoding of what this pass writes.
func (p *pass) sealing() encoding {
	if p.key == nil {
		return 0
	}
	return sealed
}

// prepare opens the workspace's key, before a transaction is open.
func (p *pass) prepare(ctx context.Context) error {
	var err error
	p.key, err = keyOf(ctx, p.Keys, p.workspace)
	return err
}

// seal seals some objects that lie open, in the database or the bucket.
func (p *pass) seal(ctx context.Context) (more bool, err error) {
	var failure error
	err = p.door.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		objects, err := objectsUnsealed(tx, p.workspace, p.damaged)
		if err != nil || len(objects) == 0 {
			return err
		}
		more = len(objects) == moverBatch
		var moved []storedBytes
		for _, object := range objects {
			if object.place != here {
				moved = append(moved, object)
				continue
			}
			if err := p.sealHere(tx, object); err != nil {
				return err
			}
		}
		if p.bucket == nil || len(moved) == 0 {
			more = more && len(moved) < len(objects)
			return nil
		}
		var done outcome
		done, failure = each(ctx, moved, p.sealBucket)
		p.damaged = append(p.damaged, done.damaged...)
		_, err = tx.Statement.ConnPool.ExecContext(ctx, sqlSealedBucket, p.workspace, done.done)
		return err
	})
	return more, errors.Join(err, failure)
}

func (p *pass) sealHere(tx *gorm.DB, object storedBytes) error {
	raw, err := p.packer.restore(p.key, object.form, object.bytes, object.hash, object.size)
	if errors.Is(err, archive.ErrDamaged) {
		p.damaged = append(p.damaged, object.hash[:])
		return nil
	}
	if err != nil {
		return err
	}
	form, packed := p.packer.pack(raw)
	form, content := seal(p.key, form, packed, object.hash)
	_, err = tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlSealedHere, p.workspace, object.hash[:], int16(form), content)
	return err
}

// sealBucket writes an object of the bucket anew, sealed and under a name that
// tells nothing, and deletes it where it lay. Where it was cut off halfway, it
// goes on.
func (p *pass) sealBucket(ctx context.Context, object storedBytes) error {
	content, err := fetch(ctx, p.bucket, p.key, p.workspace, object)
	if errors.Is(err, archive.ErrNotFound) {
		return fmt.Errorf("object %x: %w: the bucket has lost it", object.hash[:6], archive.ErrDamaged)
	}
	if err != nil {
		return fmt.Errorf("read object %x: %w", object.hash[:6], err)
	}
	raw, err := p.packer.restoreAny(p.key, content, object.hash, object.size)
	if err != nil {
		return fmt.Errorf("object %x in the bucket: %w", object.hash[:6], err)
	}
	if err := p.write(ctx, storedBytes{hash: object.hash, size: object.size}, raw); err != nil {
		return err
	}
	return p.deleteBare(ctx, object)
}

// deleteObject removes an object from the bucket under every name it may have.
func (p *pass) deleteObject(ctx context.Context, object storedBytes) error {
	if err := p.bucket.Delete(ctx, objectName(p.key, p.workspace, object.hash)); err != nil {
		return fmt.Errorf("delete object %x: %w", object.hash[:6], err)
	}
	if object.bare {
		return p.deleteBare(ctx, object)
	}
	return nil
}

func (p *pass) deleteBare(ctx context.Context, object storedBytes) error {
	if err := p.bucket.Delete(ctx, bareName(p.workspace, object.hash)); err != nil {
		return fmt.Errorf("delete object %x: %w", object.hash[:6], err)
	}
	return nil
}

// link begins the chains of lanes that were archived before there were any.
func (p *pass) link(ctx context.Context) (more bool, err error) {
	err = p.door.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		lanes, err := unlinked(tx, p.workspace)
		if err != nil || len(lanes) == 0 {
			return err
		}
		more = len(lanes) == moverBatch
		return (&DB{door: p.door, packer: p.packer, keys: p.Keys}).extendChains(tx, p.workspace, lanes)
	})
	if err != nil {
		return false, fmt.Errorf("link chains: %w", err)
	}
	return more, nil
}

func unlinked(tx *gorm.DB, workspace uuid.UUID) ([][16]byte, error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlUnlinked, workspace, moverBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lanes [][16]byte
	for rows.Next() {
		var lane uuid.UUID
		if err := rows.Scan(&lane); err != nil {
			return nil, err
		}
		lanes = append(lanes, lane)
	}
	return lanes, rows.Err()
}

func objectsUnsealed(tx *gorm.DB, workspace uuid.UUID, except [][]byte) ([]storedBytes, error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlUnsealed, workspace, moverBatch, except)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var objects []storedBytes
	for rows.Next() {
		var object storedBytes
		var hash []byte
		if err := rows.Scan(&hash, &object.size, &object.form, &object.place, &object.bare, &object.bytes); err != nil {
			return nil, err
		}
		object.hash = conversation.Hash(hash)
		objects = append(objects, object)
	}
	return objects, rows.Err()
}
