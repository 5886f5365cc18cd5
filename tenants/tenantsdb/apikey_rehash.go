package tenantsdb

import (
	"context"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// RehashAPIKey replaces the hash of an API key, unless it has been replaced already. It is not audited
// because the key stays the same.
func (db APIKeys) RehashAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, hash []byte) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE api_keys SET hash = ? WHERE workspace_id = ? AND id = ? AND hash = ?", hash, workspace, id, old).Error
	})
	return batchdb.Wrapf(err, "hash API key %s again", id)
}
