package archivedb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// The statements that seal what was stored before there were keys. Rows stay
// locked while that is done; anyone else who does the same skips them.
const (
	sqlUnsealed = `SELECT hash, size, encoding, bytes FROM archive_objects
		WHERE workspace_id = $1 AND encoding < 2 AND place = 0 AND hash <> ALL($3::bytea[])
		LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSealedHere = `UPDATE archive_objects SET encoding = $3, bytes = $4 WHERE workspace_id = $1 AND hash = $2`
	sqlUnlinked   = `SELECT l.id FROM lanes l WHERE l.workspace_id = $1 AND l.chain_link IS NULL
		AND EXISTS (SELECT FROM archive_entries e WHERE e.workspace_id = $1 AND e.lane_id = l.id) ORDER BY l.id LIMIT $2`
)

// prepare opens the workspace's key, before a transaction is open.
func (p *pass) prepare(ctx context.Context) error {
	var err error
	p.key, err = keyOf(ctx, p.Keys, p.workspace)
	return err
}

// seal seals some objects that lie open in the database.
func (p *pass) seal(ctx context.Context) (more bool, err error) {
	err = p.door.InTenant(ctx, p.workspace, func(tx *gorm.DB) error {
		objects, err := objectsUnsealed(tx, p.workspace, p.damaged)
		if err != nil {
			return err
		}
		more = len(objects) == moverBatch
		for _, object := range objects {
			if err := p.sealHere(tx, object); err != nil {
				return err
			}
		}
		return nil
	})
	return more, err
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

func unlinked(tx *gorm.DB, workspace tenants.WorkspaceID) ([][16]byte, error) {
	return batchdb.Rows(tx, pgx.RowTo[[16]byte], sqlUnlinked, workspace, moverBatch)
}

func objectsUnsealed(tx *gorm.DB, workspace tenants.WorkspaceID, except [][]byte) ([]storedBytes, error) {
	return batchdb.Rows(tx, func(row pgx.CollectableRow) (object storedBytes, err error) {
		var hash []byte
		if err := row.Scan(&hash, &object.size, &object.form, &object.bytes); err != nil {
			return object, err
		}
		object.hash = conversation.Hash(hash)
		return object, nil
	}, sqlUnsealed, workspace, moverBatch, except)
}
