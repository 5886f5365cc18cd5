package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// APIKeys stores API keys under the hashes of their secrets, and their spend.
type APIKeys struct{ *core }

// CreateAPIKey stores an API key of a workspace under the hash of its secret, on behalf of the context's
// actor, with the actor's current rights. The product acts for the key's creator. It returns the errors of
// Grantor.CheckCreate.
func (db APIKeys) CreateAPIKey(ctx context.Context, workspace tenants.WorkspaceID, key tenants.APIKey, hash []byte) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		by, err := grantor(tx, workspace, key.CreatedBy)
		if err != nil {
			return err
		}
		if err := by.CheckCreate(key); err != nil {
			return err
		}
		key.CreatedBy = by.Person
		if err := insertAPIKey(tx, workspace, key, hash); err != nil {
			return err
		}
		if len(key.Limits.Origins) > 0 {
			if err := keepOrigins(tx, workspace); err != nil {
				return err
			}
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.KeyCreated, Target: key.ID.String(), After: key.Fields()})
	})
	return batchdb.Wrapf(err, "create API key")
}

// APIKeys returns all API keys of a workspace, revoked ones too, the newest first.
func (db APIKeys) APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error) {
	seen := tenants.VisibleIn(ctx)
	rows, err := batchdb.Scan[[]apiKeyRow](ctx, db.tenant(workspace), "SELECT "+apiKeyColumns+creatorColumn+
		" FROM api_keys WHERE workspace_id = ? AND (? OR id IN ?) ORDER BY created_at DESC, id DESC", workspace, seen.All, seen.Keys)
	keys := make([]tenants.APIKey, len(rows))
	for i := range rows {
		if err == nil {
			keys[i], err = rows[i].toAPIKey()
		}
	}
	return keys, batchdb.Wrapf(err, "API keys of workspace %s", workspace)
}

// APIKey returns an API key of a workspace in any state, with the scopes that the person behind it may use
// now. It returns tenants.ErrNotFound.
func (db APIKeys) APIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.APIKey, error) {
	var key tenants.APIKey
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		if key, err = findAPIKey(tx.Table("api_keys").Where("workspace_id = ? AND id = ?", workspace, id)); err != nil {
			return err
		}
		if key, err = withRestraint(tx, key); err != nil {
			return err
		}
		return back(tx, &key, key.ID)
	})
	return key, batchdb.Wrapf(err, "API key %s", id)
}

// APIKeyByHash returns the API key with the hash of a secret in any state and workspace, with the scopes that
// the person behind it may use now. For the secret before a rotation, the key expires with that secret. It
// returns tenants.ErrKeyUnknown.
func (db APIKeys) APIKeyByHash(ctx context.Context, hash []byte) (tenants.APIKey, error) {
	var rows []struct {
		Row apiKeyRow `gorm:"embedded"`

		IsOld       bool
		OldPersonID uuid.UUID
	}
	var key tenants.APIKey
	err := db.withKey(ctx, hash, func(tx *gorm.DB) error {
		err := tx.Table("api_keys").Select(apiKeyColumns+", hash <> ? AS is_old, coalesce(old_person_id, id) AS old_person_id", hash).Where("hash = ? OR old_hash = ?", hash, hash).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return err
		}
		if key, err = rows[0].Row.toAPIKey(); err != nil {
			return err
		}
		if key, err = withRestraint(tx, key); err != nil {
			return err
		}
		start := key.ID
		if rows[0].IsOld {
			start = rows[0].OldPersonID
		}
		return back(tx, &key, start)
	})
	if err != nil {
		return tenants.APIKey{}, fmt.Errorf("find API key: %w", err)
	}
	if len(rows) == 0 {
		return tenants.APIKey{}, tenants.ErrKeyUnknown
	}
	if rows[0].IsOld && (key.ExpiresAt == nil || key.OldUntil.Before(*key.ExpiresAt)) {
		key.ExpiresAt = key.OldUntil
	}
	return key, nil
}

// RevokeAPIKey revokes an API key of a workspace on all replicas. A second call has no effect. It returns
// tenants.ErrNotFound, and tenants.ErrDenied.
func (db APIKeys) RevokeAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		key, by, err := lockAPIKey(tx, workspace, id)
		if err != nil {
			return err
		}
		if err := by.CheckRevoke(key); err != nil {
			return err
		}
		if err := revokeAPIKey(tx, workspace, id); err != nil {
			return err
		}
		if len(key.Limits.Origins) > 0 {
			if err := keepOrigins(tx, workspace); err != nil {
				return err
			}
		}
		return errors.Join(
			audit(tx, workspace, tenants.Change{Action: tenants.KeyRevoked, Target: id.String(), Before: tenants.Fields{"name": key.Name}}),
			notify(tx, KeysChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "revoke API key %s", id)
}

// TouchAPIKeys records when API keys of a workspace were last used. A time before the recorded one has no
// effect.
func (db APIKeys) TouchAPIKeys(ctx context.Context, workspace tenants.WorkspaceID, used map[uuid.UUID]time.Time) error {
	ids, times := make([][16]byte, 0, len(used)), make([]time.Time, 0, len(used))
	for id, at := range used {
		ids, times = append(ids, id), append(times, at)
	}
	// Rows are locked in order, so that two replicas cannot deadlock.
	const statement = `UPDATE api_keys k SET last_used_at = t.at
		FROM (
			SELECT l.id, u.at FROM unnest($2::uuid[], $3::timestamptz[]) AS u (id, at)
			JOIN api_keys l ON l.workspace_id = $1 AND l.id = u.id ORDER BY l.id FOR UPDATE OF l
		) t
		WHERE k.workspace_id = $1 AND k.id = t.id AND (k.last_used_at IS NULL OR k.last_used_at < t.at)`
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		_, err := tx.Statement.ConnPool.ExecContext(ctx, statement, workspace, ids, times)
		return err
	})
	return batchdb.Wrapf(err, "note use of %d API keys", len(used))
}

// UsedAPIKeys returns the hashes of a workspace's API keys that were used or created since a time, with both
// secrets of rotated ones, the latest first and at most most.
func (db APIKeys) UsedAPIKeys(ctx context.Context, workspace tenants.WorkspaceID, since time.Time, most int) (hashes [][]byte, err error) {
	const statement = `SELECT unnest(CASE WHEN old_until > now() THEN ARRAY[hash, old_hash] ELSE ARRAY[hash] END)
		FROM api_keys WHERE workspace_id = ? AND revoked_at IS NULL AND greatest(created_at, last_used_at) >= ?
		ORDER BY greatest(created_at, last_used_at) DESC LIMIT ?`
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(statement, workspace, since, most).Scan(&hashes).Error
	})
	return hashes, batchdb.Wrapf(err, "API keys in use")
}

func insertAPIKey(tx *gorm.DB, workspace tenants.WorkspaceID, key tenants.APIKey, hash []byte) error {
	limits, err := limitsJSON(key.Limits)
	if err != nil {
		return err
	}
	key.Workspace = workspace
	return create(tx, "api_keys", &struct {
		Row  apiKeyRow `gorm:"embedded"`
		Hash []byte
	}{apiKeyRow{APIKey: key, StoredLimits: limits, NoStore: key.Limits.NoStore}, hash})
}

func revokeAPIKey(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) error {
	return changedOne(tx.Exec("UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE workspace_id = ? AND id = ?", workspace, id), tenants.ErrNotFound)
}

//nolint:gosec // names of columns
const apiKeyColumns = `workspace_id, id, name, prefix, suffix, scopes, pipeline, limits, no_store, created_by, created_at,
	expires_at, revoked_at, last_used_at, old_until`

// creatorColumn is the member who created a key.
const creatorColumn = ", coalesce((SELECT u.email FROM users u WHERE u.id = api_keys.created_by), '') AS creator"

// apiKeyRow is a row of api_keys.
type apiKeyRow struct {
	tenants.APIKey

	StoredLimits string `gorm:"column:limits"`
	NoStore      bool
}

func (r *apiKeyRow) toAPIKey() (key tenants.APIKey, err error) {
	key = r.APIKey
	key.Limits, err = readLimits([]byte(r.StoredLimits))
	key.Limits.NoStore = r.NoStore
	return key, batchdb.Wrapf(err, "API key %s", key.ID)
}

// findAPIKey returns the key of a query, or tenants.ErrNotFound.
func findAPIKey(query *gorm.DB) (tenants.APIKey, error) {
	row, err := find[apiKeyRow](query.Select(apiKeyColumns))
	if err != nil {
		return tenants.APIKey{}, err
	}
	return row.toAPIKey()
}

// storable returns text that a text column accepts: valid UTF-8 without NUL.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}

// RehashAPIKey replaces the hash of an API key, unless it has been replaced already. It is not audited
// because the key stays the same.
func (db APIKeys) RehashAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, hash []byte) error {
	err := batchdb.Exec(ctx, db.tenant(workspace), "UPDATE api_keys SET hash = ? WHERE workspace_id = ? AND id = ? AND hash = ?", hash, workspace, id, old)
	return batchdb.Wrapf(err, "hash API key %s again", id)
}

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
		if err := batchdb.Write(tx, "UPDATE api_keys SET name = ?, pipeline = ?, expires_at = ?, limits = ?::jsonb, no_store = ? WHERE workspace_id = ? AND id = ?",
			storable(key.Name), key.Pipeline, key.ExpiresAt, limits, key.Limits.NoStore, workspace, key.ID); err != nil {
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
		return errors.Join(audit(tx, workspace, change), notify(tx, KeysChannel, workspace.String()))
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
		err = batchdb.Write(tx, `UPDATE api_keys SET old_hash = hash, old_until = ?, hash = ?, prefix = ?, suffix = ?,
			old_person_id = coalesce(person_id, created_by), person_id = ?
			WHERE workspace_id = ? AND id = ?`, rotation.OldUntil, rotation.Hash, rotation.Prefix, rotation.Suffix, by.Person, workspace, id)
		if err != nil {
			return err
		}
		after := before
		after.Prefix, after.Suffix, after.OldUntil = rotation.Prefix, rotation.Suffix, &rotation.OldUntil
		change := tenants.Change{Action: tenants.KeyRotated, Target: id.String(), Before: before.Fields(), After: after.Fields()}
		return errors.Join(audit(tx, workspace, change), notify(tx, KeysChannel, workspace.String()))
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
	key, err := findAPIKey(tx.Table("api_keys").Where("workspace_id = ? AND id = ?", workspace, id).Clauses(locked()))
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
