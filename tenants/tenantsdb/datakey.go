package tenantsdb

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// DataKeys stores the wrapped data keys of workspaces, and the proof of the master key that wraps them.
type DataKeys struct{ *core }

// DataKey returns the wrapped data key of a workspace, or tenants.ErrNotFound.
func (db DataKeys) DataKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	var keys [][]byte
	err := db.apart(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT wrapped FROM data_keys WHERE workspace_id = ?", workspace).Scan(&keys).Error
	})
	key, err := batchdb.First(keys, err, tenants.ErrNotFound)
	return key, batchdb.Wrapf(err, "read data key")
}

// AddDataKey stores the first data key of a workspace and returns the stored one, which differs if someone
// else was first. It is durable when AddDataKey returns.
func (db DataKeys) AddDataKey(ctx context.Context, workspace tenants.WorkspaceID, wrapped []byte) ([]byte, error) {
	err := db.apart(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO data_keys (workspace_id, wrapped) VALUES (?, ?) ON CONFLICT DO NOTHING", workspace, wrapped).Error
	})
	if err != nil {
		return nil, fmt.Errorf("add data key: %w", err)
	}
	return db.DataKey(ctx, workspace)
}

// RewrapDataKey replaces the wrapped data key of a workspace, unless it has been
// replaced already.
func (db DataKeys) RewrapDataKey(ctx context.Context, workspace tenants.WorkspaceID, old, wrapped []byte) error {
	err := db.apart(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE data_keys SET wrapped = ?, wrapped_at = now() WHERE workspace_id = ? AND wrapped = ?",
			wrapped, workspace, old).Error
	})
	return batchdb.Wrapf(err, "rewrap data key")
}

// SomeDataKeys returns at most limit wrapped data keys, by workspace. It uses the login of the database's
// owner because the application's login may not exist yet.
func SomeDataKeys(ctx context.Context, ownerURL string, limit int) (map[tenants.WorkspaceID][]byte, error) {
	wrapped := map[tenants.WorkspaceID][]byte{}
	err := asOwner(ctx, ownerURL, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT workspace_id, wrapped FROM data_keys LIMIT $1", limit)
		if err != nil {
			return err
		}
		var workspace tenants.WorkspaceID
		var key []byte
		_, err = pgx.ForEachRow(rows, []any{&workspace, &key}, func() error {
			wrapped[workspace] = bytes.Clone(key)
			return nil
		})
		return err
	})
	return wrapped, batchdb.Wrapf(err, "read some data keys")
}

// AllWorkspaces is Workspaces.AllWorkspaces.
func (db DataKeys) AllWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	return Workspaces(db).AllWorkspaces(ctx)
}

// apart is InTenant in its own transaction even inside Together, because a data key must survive a rollback
// of the caller's transaction.
func (db DataKeys) apart(ctx context.Context, workspace tenants.WorkspaceID, fn func(tx *gorm.DB) error) error {
	return db.transaction(ctx, forWorkspace, workspace.String(), fn)
}
