package tenantsdb

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// ChangeAPIKey sets the name, pipeline, expiry and limits of an API key on all replicas. It returns
// tenants.ErrNotFound, a tenants.Invalid for a revoked key, and the errors of Grantor.CheckChange.
func (db APIKeys) ChangeAPIKey(ctx context.Context, tenant tenants.Tenant, key tenants.APIKey) error {
	workspace := tenant.Workspace()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, by, err := lockAPIKey(tx, workspace, key.ID)
		if err != nil {
			return err
		}
		if before.RevokedAt != nil {
			return errRevoked
		}
		if err := by.CheckChange(before, key); err != nil {
			return err
		}
		limits, err := limitsJSON(key.Limits)
		if err != nil {
			return err
		}
		err = tx.Exec("UPDATE api_keys SET name = ?, pipeline = ?, expires_at = ?, limits = ?::jsonb, no_store = ? WHERE workspace_id = ? AND id = ?",
			storable(key.Name), key.Pipeline, key.ExpiresAt, limits, key.Limits.NoStore, workspace, key.ID).Error
		if err != nil {
			return err
		}
		if !slices.Equal(before.Limits.Origins, key.Limits.Origins) {
			if err := keepOrigins(tx, workspace); err != nil {
				return err
			}
		}
		after := before
		after.Name, after.Pipeline, after.ExpiresAt, after.Limits = key.Name, key.Pipeline, key.ExpiresAt, key.Limits
		change := tenants.Change{Action: tenants.KeyChanged, Target: key.ID.String(), Before: before.Fields(), After: after.Fields()}
		if err := audit(tx, workspace, change); err != nil {
			return err
		}
		return notify(tx, KeysChannel, workspace.String())
	})
	return batchdb.Wrapf(err, "change API key %s", key.ID)
}

// RotateAPIKey gives an API key another secret on all replicas. The previous one works until the rotation's
// OldUntil, and any older one ends. The person who rotates a key becomes responsible for it. It returns
// tenants.ErrNotFound, a tenants.Invalid for a revoked key, and the errors of Grantor.CheckRotate.
func (db APIKeys) RotateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, rotation tenants.Rotation) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		before, by, err := lockAPIKey(tx, workspace, id)
		if err != nil {
			return err
		}
		if before.RevokedAt != nil {
			return errRevoked
		}
		if err := by.CheckRotate(before); err != nil {
			return err
		}
		// The person who sees the secret becomes responsible for the key.
		err = tx.Exec(`UPDATE api_keys SET old_hash = hash, old_until = ?, hash = ?, prefix = ?, suffix = ?,
			old_person_id = coalesce(person_id, created_by), person_id = ?
			WHERE workspace_id = ? AND id = ?`, rotation.OldUntil, rotation.Hash, rotation.Prefix, rotation.Suffix, by.Person, workspace, id).Error
		if err != nil {
			return err
		}
		after := before
		after.Prefix, after.Suffix, after.OldUntil = rotation.Prefix, rotation.Suffix, &rotation.OldUntil
		change := tenants.Change{Action: tenants.KeyRotated, Target: id.String(), Before: before.Fields(), After: after.Fields()}
		if err := audit(tx, workspace, change); err != nil {
			return err
		}
		return notify(tx, KeysChannel, workspace.String())
	})
	return batchdb.Wrapf(err, "rotate API key %s", id)
}

// KeyRights returns the rights that the context's actor may give an API key, and the key's current pipeline.
// For an existing key, the people behind it bound the rights too. The product acts for the key's creator. It
// returns tenants.ErrNotFound.
func (db APIKeys) KeyRights(ctx context.Context, tenant tenants.Tenant, key tenants.APIKey) (rights tenants.KeyRights, pipeline string, err error) {
	workspace := tenant.Workspace()
	err = db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		if key.ID == uuid.Nil {
			by, err := grantor(tx, workspace, key.CreatedBy)
			rights = by.Rights
			return err
		}
		stored, by, err := lockAPIKey(tx, workspace, key.ID)
		if err != nil {
			return err
		}
		_, err = backWith(tx, &stored, key.ID)
		rights, pipeline = by.Rights.And(stored.Rights), stored.Pipeline
		return err
	})
	return rights, pipeline, batchdb.Wrapf(err, "rights of API key %s", key.ID)
}

// errRevoked refuses a change of a revoked key.
var errRevoked = tenants.Invalid{Field: "id", Message: "names a revoked key, which stays as it is; create another"}

// lockAPIKey returns and locks a key, with the actor who changes it; the product acts for the person behind
// the key.
func lockAPIKey(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.APIKey, tenants.Grantor, error) {
	var rows []apiKeyRow
	err := tx.Raw("SELECT "+apiKeyColumns+" FROM api_keys WHERE workspace_id = ? AND id = ? FOR UPDATE", workspace, id).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	if err != nil {
		return tenants.APIKey{}, tenants.Grantor{}, err
	}
	key, err := row.toAPIKey()
	if err != nil {
		return tenants.APIKey{}, tenants.Grantor{}, err
	}
	behind, err := personBehind(tx, workspace, id)
	if err != nil {
		return tenants.APIKey{}, tenants.Grantor{}, err
	}
	by, err := grantor(tx, workspace, behind.Person)
	return key, by, err
}

// keyLimits is the stored form of an API key's limits; NoStore has its own column.
type keyLimits struct {
	Models         []string       `json:"models,omitempty"`
	Endpoints      []string       `json:"endpoints,omitempty"`
	Addresses      []netip.Prefix `json:"addresses,omitempty"`
	Origins        []string       `json:"origins,omitempty"`
	LockOverrides  bool           `json:"lock_overrides,omitempty"`
	PrivateBaseURL *bool          `json:"private_base_url,omitempty"`
	AllowUnpriced  bool           `json:"allow_unpriced,omitempty"`
}

func limitsJSON(limits tenants.Limits) (string, error) {
	stored, err := withQuota(keyLimits{
		Models: limits.Models, Endpoints: limits.Endpoints, Addresses: limits.Addresses, Origins: limits.Origins, LockOverrides: limits.LockOverrides, PrivateBaseURL: limits.PrivateBaseURL,
		AllowUnpriced: limits.AllowUnpriced,
	}, limits.Quota)
	return string(stored), batchdb.Wrapf(err, "write limits")
}

func readLimits(stored []byte) (tenants.Limits, error) {
	var limits keyLimits
	quota, err := readWithQuota(stored, &limits)
	if err != nil {
		return tenants.Limits{}, fmt.Errorf("read limits: %w", err)
	}
	quota.AllowUnpriced = limits.AllowUnpriced
	return tenants.Limits{
		Models: limits.Models, Endpoints: limits.Endpoints, Addresses: limits.Addresses, Origins: limits.Origins, LockOverrides: limits.LockOverrides, PrivateBaseURL: limits.PrivateBaseURL,
		Quota: quota,
	}, nil
}
