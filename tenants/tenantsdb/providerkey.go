package tenantsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// ProviderKeys stores provider keys.
type ProviderKeys struct{ *core }

// AddProviderKey stores a sealed provider key of a workspace.
func (db ProviderKeys) AddProviderKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.ProviderKey) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := insertProviderKey(tx, workspace, key); err != nil {
			return err
		}
		added := tenants.Change{Action: tenants.ProviderKeyAdded, Target: key.ID.String(), After: key.Fields()}
		return providerKeyChanged(tx, workspace, key, added)
	})
	return batchdb.Wrapf(err, "add provider key")
}

// ProviderKeys returns the provider keys of a workspace in routing order: by their numbers, then the oldest
// first.
func (db ProviderKeys) ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error) {
	var rows []providerKeyRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("provider_keys").Select(providerKeyColumns).
			Where("workspace_id = ?", workspace).Order("place, created_at, id").Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("provider keys of workspace %s: %w", workspace, err)
	}
	keys := make([]tenants.ProviderKey, len(rows))
	for i, row := range rows {
		if keys[i], err = row.toProviderKey(); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// ChangeProviderKey replaces a provider key of a workspace with the result of change, and records it as
// action. If the key becomes the default, it replaces the previous default. It returns tenants.ErrNotFound
// and the errors of change.
func (db ProviderKeys) ChangeProviderKey(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, action tenants.Action, change func(tenants.ProviderKey) (tenants.ProviderKey, error)) (tenants.ProviderKey, error) {
	workspace := tenant.Workspace()
	var after tenants.ProviderKey
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := lockProviderKey(tx, workspace, id)
		if err != nil {
			return err
		}
		if after, err = change(before); err != nil {
			return err
		}
		if err := updateProviderKey(tx, workspace, after); err != nil {
			return err
		}
		return providerKeyChanged(tx, workspace, after, tenants.Change{Action: action, Target: id.String(), Before: before.Fields(), After: after.Fields()})
	})
	return after, batchdb.Wrapf(err, "change provider key %s", id)
}

// CheckedProviderKey stores the outcome of a test. It ignores a key deleted meanwhile.
func (db ProviderKeys) CheckedProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, check tenants.ProviderKeyCheck) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE provider_keys SET checked_at = ?, check_ok = ?, check_status = ?, check_problem = ? WHERE workspace_id = ? AND id = ?",
			check.At, check.OK, check.Status, storable(check.Problem), workspace, id).Error
	})
	return batchdb.Wrapf(err, "keep test of provider key %s", id)
}

// ResealProviderKey replaces the sealed secret of a provider key with a resealed one, unless it has been
// replaced already. It sends no notification because the secret in other replicas' memory stays the same.
func (db ProviderKeys) ResealProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, sealed []byte) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE provider_keys SET sealed = ? WHERE workspace_id = ? AND id = ? AND sealed = ?", sealed, workspace, id, old).Error
	})
	return batchdb.Wrapf(err, "reseal provider key %s", id)
}

// DeleteProviderKey removes a provider key of a workspace. It returns
// tenants.ErrNotFound.
func (db ProviderKeys) DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		key, err := lockProviderKey(tx, workspace, id)
		if err != nil {
			return err
		}
		if err := tx.Exec("DELETE FROM provider_keys WHERE workspace_id = ? AND id = ?", workspace, id).Error; err != nil {
			return err
		}
		if err := errors.Join(modelPrices().drop(tx, workspace, id), modelLimits().drop(tx, workspace, id)); err != nil {
			return err
		}
		removed := tenants.Change{Action: tenants.ProviderKeyRemoved, Target: id.String(), Before: key.Fields()}
		return providerKeyChanged(tx, workspace, tenants.ProviderKey{}, removed)
	})
	return batchdb.Wrapf(err, "delete provider key %s", id)
}

// providerKeyChanged performs the common steps of a key's change: one default for each provider, an audit
// entry, a notification to all replicas.
func providerKeyChanged(tx *gorm.DB, workspace tenants.WorkspaceID, key tenants.ProviderKey, change tenants.Change) error {
	if key.Default {
		err := tx.Exec("UPDATE provider_keys SET is_default = false WHERE workspace_id = ? AND provider = ? AND id <> ? AND is_default",
			workspace, string(key.Provider), key.ID).Error
		if err != nil {
			return err
		}
	}
	if err := audit(tx, workspace, change); err != nil {
		return err
	}
	return notify(tx, SettingsChannel, workspace.String())
}

// lockProviderKey returns a key and locks it until the transaction ends.
func lockProviderKey(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.ProviderKey, error) {
	var rows []providerKeyRow
	err := tx.Raw("SELECT "+providerKeyColumns+" FROM provider_keys WHERE workspace_id = ? AND id = ? FOR UPDATE", workspace, id).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	if err != nil {
		return tenants.ProviderKey{}, err
	}
	return row.toProviderKey()
}

func insertProviderKey(tx *gorm.DB, workspace tenants.WorkspaceID, key tenants.ProviderKey) error {
	headers, models, err := listsOf(key)
	if err != nil {
		return err
	}
	sealedAt := key.SealedAt
	if sealedAt.IsZero() {
		sealedAt = key.CreatedAt
	}
	return tx.Exec(`INSERT INTO provider_keys (workspace_id, id, provider, both_dialects, preset, name, base_url, region, auth, headers, models, place,
			is_default, disabled, wait_seconds, last4, sealed, sealed_at, created_by, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		workspace, key.ID, string(key.Provider), key.Both, key.Preset, storable(key.Name), storable(key.BaseURL), storable(key.Region), string(key.Auth),
		headers, models, key.Order, key.Default, key.Disabled, int(key.Wait/time.Second), storable(key.Last4), key.Sealed, sealedAt, key.CreatedBy, key.CreatedAt).Error
}

func updateProviderKey(tx *gorm.DB, workspace tenants.WorkspaceID, key tenants.ProviderKey) error {
	headers, models, err := listsOf(key)
	if err != nil {
		return err
	}
	return tx.Exec(`UPDATE provider_keys SET both_dialects = ?, name = ?, base_url = ?, region = ?, auth = ?, headers = ?::jsonb, models = ?::jsonb, place = ?,
			is_default = ?, disabled = ?, wait_seconds = ?, last4 = ?, sealed = ?, sealed_at = ?
		WHERE workspace_id = ? AND id = ?`,
		key.Both, storable(key.Name), storable(key.BaseURL), storable(key.Region), string(key.Auth), headers, models, key.Order,
		key.Default, key.Disabled, int(key.Wait/time.Second), storable(key.Last4), key.Sealed, key.SealedAt, workspace, key.ID).Error
}

// listsOf returns a key's headers and models for JSON columns.
func listsOf(key tenants.ProviderKey) (headers, models string, err error) {
	encodedHeaders, err := json.Marshal(append([]tenants.Header{}, key.Headers...))
	if err != nil {
		return "", "", err
	}
	encodedModels, err := json.Marshal(append([]string{}, key.Models...))
	return string(encodedHeaders), string(encodedModels), err
}

const providerKeyColumns = `workspace_id, id, provider, both_dialects, preset, name, base_url, region, auth, headers, models, place, is_default,
	disabled, wait_seconds, last4, sealed, sealed_at, created_by, created_at, checked_at, check_ok, check_status, check_problem`

type providerKeyRow struct {
	WorkspaceID tenants.WorkspaceID
	ID          uuid.UUID
	Provider    string
	Both        bool `gorm:"column:both_dialects"`
	Preset      string
	Name        string
	BaseURL     string
	Region      string
	Auth        string
	Headers     []byte
	Models      []byte
	Place       int
	IsDefault   bool
	Disabled    bool
	WaitSeconds int
	Last4       string
	Sealed      []byte
	SealedAt    time.Time
	CreatedBy   uuid.UUID
	CreatedAt   time.Time

	CheckedAt    *time.Time
	CheckOK      bool `gorm:"column:check_ok"`
	CheckStatus  int
	CheckProblem string
}

func (r providerKeyRow) toProviderKey() (tenants.ProviderKey, error) {
	key := tenants.ProviderKey{
		ID: r.ID, Workspace: r.WorkspaceID, Provider: tenants.Provider(r.Provider), Both: r.Both, Preset: r.Preset,
		Name: r.Name, BaseURL: r.BaseURL, Region: r.Region, Auth: tenants.Auth(r.Auth),
		ProviderKeyRouting: tenants.ProviderKeyRouting{Order: r.Place, Default: r.IsDefault, Disabled: r.Disabled, Wait: time.Duration(r.WaitSeconds) * time.Second},
		ProviderKeySecret:  tenants.ProviderKeySecret{Last4: r.Last4, Sealed: r.Sealed, SealedAt: r.SealedAt}, CreatedBy: r.CreatedBy,
		CreatedAt: r.CreatedAt,
		Check:     tenants.ProviderKeyCheck{OK: r.CheckOK, Status: r.CheckStatus, Problem: r.CheckProblem},
	}
	if r.CheckedAt != nil {
		key.Check.At = *r.CheckedAt
	}
	if err := json.Unmarshal(r.Headers, &key.Headers); err != nil {
		return tenants.ProviderKey{}, fmt.Errorf("headers of provider key %s: %w", r.ID, err)
	}
	if err := json.Unmarshal(r.Models, &key.Models); err != nil {
		return tenants.ProviderKey{}, fmt.Errorf("models of provider key %s: %w", r.ID, err)
	}
	return key, nil
}
