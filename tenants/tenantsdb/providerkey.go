package tenantsdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// AddProviderKey keeps a sealed provider key of a workspace.
func (db *DB) AddProviderKey(ctx context.Context, workspace uuid.UUID, key tenants.ProviderKey) error {
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := insertProviderKey(tx, workspace, key); err != nil {
			return err
		}
		added := tenants.Change{Action: tenants.ProviderKeyAdded, Target: key.ID.String(), After: key.Fields()}
		if err := audit(tx, workspace, added); err != nil {
			return err
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	if err != nil {
		return fmt.Errorf("add provider key: %w", err)
	}
	return nil
}

// ProviderKeys returns the provider keys of a workspace, the oldest first.
func (db *DB) ProviderKeys(ctx context.Context, workspace uuid.UUID) ([]tenants.ProviderKey, error) {
	var rows []providerKeyRow
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("provider_keys").
			Select("workspace_id, id, provider, name, base_url, last4, sealed, created_by, created_at").
			Where("workspace_id = ?", workspace).Order("created_at, id").Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("provider keys of workspace %s: %w", workspace, err)
	}
	keys := make([]tenants.ProviderKey, len(rows))
	for i, row := range rows {
		keys[i] = row.toProviderKey()
	}
	return keys, nil
}

// DeleteProviderKey removes a provider key of a workspace. It returns
// tenants.ErrNotFound.
func (db *DB) DeleteProviderKey(ctx context.Context, workspace, id uuid.UUID) error {
	err := db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		var row providerKeyRow
		deleted := tx.Raw("DELETE FROM provider_keys WHERE workspace_id = ? AND id = ? RETURNING *", workspace, id).Scan(&row)
		if deleted.Error == nil && deleted.RowsAffected == 0 {
			return tenants.ErrNotFound
		}
		if deleted.Error != nil {
			return deleted.Error
		}
		removed := tenants.Change{Action: tenants.ProviderKeyRemoved, Target: id.String(), Before: row.toProviderKey().Fields()}
		if err := audit(tx, workspace, removed); err != nil {
			return err
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	if err != nil {
		return fmt.Errorf("delete provider key %s: %w", id, err)
	}
	return nil
}

func insertProviderKey(tx *gorm.DB, workspace uuid.UUID, key tenants.ProviderKey) error {
	return tx.Exec(`INSERT INTO provider_keys (workspace_id, id, provider, name, base_url, last4, sealed, created_by, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		workspace, key.ID, string(key.Provider), storable(key.Name), storable(key.BaseURL), storable(key.Last4), key.Sealed,
		key.CreatedBy, key.CreatedAt).Error
}

type providerKeyRow struct {
	WorkspaceID uuid.UUID
	ID          uuid.UUID
	Provider    string
	Name        string
	BaseURL     string
	Last4       string
	Sealed      []byte
	CreatedBy   uuid.UUID
	CreatedAt   time.Time
}

func (r providerKeyRow) toProviderKey() tenants.ProviderKey {
	return tenants.ProviderKey{
		ID: r.ID, Workspace: r.WorkspaceID, Provider: tenants.Provider(r.Provider), Name: r.Name, BaseURL: r.BaseURL,
		Last4: r.Last4, Sealed: r.Sealed, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt,
	}
}
