package archivedb

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

// The statements of an erasure.
const (
	sqlDoomAll = `UPDATE archive_objects SET place = 2, bytes = NULL
		WHERE workspace_id = $1 AND ctid = ANY(ARRAY(SELECT ctid FROM archive_objects WHERE workspace_id = $1 AND place <> 2 LIMIT $2))`
	sqlEraseHere = `DELETE FROM archive_objects
		WHERE workspace_id = $1 AND ctid = ANY(ARRAY(SELECT ctid FROM archive_objects WHERE workspace_id = $1 AND place = 0 LIMIT $2))`
	sqlElsewhere = `SELECT (SELECT count(*) FROM archive_objects WHERE workspace_id = $1 AND place <> 0)
		+ (SELECT count(*) FROM archive_segments WHERE workspace_id = $1)`
)

// eraseBatch is how many objects one transaction of an erasure deletes.
const eraseBatch = 2000

// ErrNoBucket says that archived bytes are in a bucket, but none is configured.
var ErrNoBucket = errors.New("archived bytes are in a bucket; set PALIMPSEST_BLOB_URL to it, as it was")

// Erase deletes all unused archived bytes of a workspace from the database and the bucket. After a failure
// another call continues. It returns ErrNoBucket if bytes are in a bucket and none is configured.
func (m *Mover) Erase(ctx context.Context, workspace tenants.WorkspaceID) error {
	statement := sqlDoomAll
	if m.bucket == nil {
		statement = sqlEraseHere
	}
	for more := true; more; {
		changed, err := m.change(ctx, workspace, statement)
		if err != nil {
			return fmt.Errorf("erase archived bytes: %w", err)
		}
		more = changed > 0
	}
	if m.bucket == nil {
		return m.nothingElsewhere(ctx, workspace)
	}
	pass, err := m.newPass(ctx, workspace)
	if err != nil {
		return fmt.Errorf("erase archived bytes: %w", err)
	}
	if err := pass.erase(ctx); err != nil {
		return fmt.Errorf("erase archived bytes: %w", err)
	}
	return nil
}

// erase deletes all segments of a workspace and the records of their content, without the usual waiting time.
func (p *pass) erase(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = p.forget(ctx); err != nil {
			return err
		}
	}
	if err := p.abandon(ctx); err != nil {
		return err
	}
	if err := p.exec(ctx, p.workspace, sqlRetireAll, p.workspace); err != nil {
		return err
	}
	return p.retire(ctx, 0)
}

func (m *Mover) change(ctx context.Context, workspace tenants.WorkspaceID, statement string) (int64, error) {
	var changed int64
	err := m.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		result, err := tx.Statement.ConnPool.ExecContext(ctx, statement, workspace, eraseBatch)
		if err != nil {
			return err
		}
		changed, err = result.RowsAffected()
		return err
	})
	return changed, err
}

func (m *Mover) nothingElsewhere(ctx context.Context, workspace tenants.WorkspaceID) error {
	var elsewhere int
	err := m.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Statement.ConnPool.QueryRowContext(ctx, sqlElsewhere, workspace).Scan(&elsewhere)
	})
	if err == nil && elsewhere > 0 {
		err = fmt.Errorf("%d objects: %w", elsewhere, ErrNoBucket)
	}
	return err
}
