package tenantsdb

import (
	"bytes"
	"context"
	"errors"
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
	keys, err := batchdb.Scan[[][]byte](ctx, db.apart(workspace), "SELECT wrapped FROM data_keys WHERE workspace_id = ?", workspace)
	key, err := batchdb.First(keys, err, tenants.ErrNotFound)
	return key, batchdb.Wrapf(err, "read data key")
}

// AddDataKey stores the first data key of a workspace and returns the stored one, which differs if someone
// else was first. It is durable when AddDataKey returns.
func (db DataKeys) AddDataKey(ctx context.Context, workspace tenants.WorkspaceID, wrapped []byte) ([]byte, error) {
	err := batchdb.Exec(ctx, db.apart(workspace), "INSERT INTO data_keys (workspace_id, wrapped) VALUES (?, ?) ON CONFLICT DO NOTHING", workspace, wrapped)
	if err != nil {
		return nil, fmt.Errorf("add data key: %w", err)
	}
	return db.DataKey(ctx, workspace)
}

// RewrapDataKey replaces the wrapped data key of a workspace, unless it has been
// replaced already.
func (db DataKeys) RewrapDataKey(ctx context.Context, workspace tenants.WorkspaceID, old, wrapped []byte) error {
	err := batchdb.Exec(ctx, db.apart(workspace), "UPDATE data_keys SET wrapped = ?, wrapped_at = now() WHERE workspace_id = ? AND wrapped = ?", wrapped, workspace, old)
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

// apart is the scope of a workspace in its own transaction even inside Together, because a data key must survive a rollback
// of the caller's transaction.
func (db DataKeys) apart(workspace tenants.WorkspaceID) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error {
		return db.transaction(ctx, forWorkspace, workspace.String(), fn)
	}
}

// KeepMasterProof stores the proof of a database's master key and returns the stored one, which differs if
// one existed. It uses the owner's login because no other is available yet at startup.
func KeepMasterProof(ctx context.Context, ownerURL string, proof []byte) ([]byte, error) {
	var kept []byte
	err := asOwner(ctx, ownerURL, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO master_proof (sealed) VALUES ($1) ON CONFLICT DO NOTHING", proof); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT sealed FROM master_proof").Scan(&kept)
	})
	return kept, batchdb.Wrapf(err, "keep proof of the master key")
}

// StoredMasterProof returns the stored proof; nil before the first start. It only reads, with the owner's
// login.
func StoredMasterProof(ctx context.Context, ownerURL string) ([]byte, error) {
	var kept []byte
	err := asOwner(ctx, ownerURL, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT sealed FROM master_proof").Scan(&kept)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return kept, batchdb.Wrapf(err, "read proof of the master key")
}

// MasterProof returns the proof of the database's master key, or tenants.ErrNotFound.
func (db DataKeys) MasterProof(ctx context.Context) ([]byte, error) {
	proofs, err := batchdb.Scan[[][]byte](ctx, db.asWorker, "SELECT sealed FROM master_proof")
	proof, err := batchdb.First(proofs, err, tenants.ErrNotFound)
	return proof, batchdb.Wrapf(err, "read proof of the master key")
}

// ResealMasterProof replaces the proof, unless it has been replaced already.
func (db DataKeys) ResealMasterProof(ctx context.Context, old, sealed []byte) error {
	err := batchdb.Exec(ctx, db.asWorker, "UPDATE master_proof SET sealed_at = now(), sealed = ? WHERE sealed = ?", sealed, old)
	return batchdb.Wrapf(err, "replace proof of the master key")
}

// asOwner runs a transaction with the owner's login. Most policies apply to it as well.
func asOwner(ctx context.Context, ownerURL string, work func(tx pgx.Tx) error) error {
	connection, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("connect as the database's owner: %w", err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	return pgx.BeginFunc(ctx, connection, work)
}
