package tenantsdb

import (
	"context"
	"errors"
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
		key.Workspace = workspace
		if key.SealedAt.IsZero() {
			key.SealedAt = key.CreatedAt
		}
		if err := create(tx, "provider_keys", &key); err != nil {
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
	keys, err := all[tenants.ProviderKey](ctx, db.tenant(workspace), "provider_keys", "place, created_at, id", "workspace_id = ?", workspace)
	return keys, batchdb.Wrapf(err, "provider keys of workspace %s", workspace)
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
		changed := []string{
			"both_dialects", "name", "base_url", "region", "auth", "headers", "models", "place", "weight", "is_default", "disabled", "wait_seconds",
			"last4", "sealed", "sealed_at",
		}
		if err := update(tx, "provider_keys", &after, changed, "workspace_id = ? AND id = ?", workspace, id); err != nil {
			return err
		}
		return providerKeyChanged(tx, workspace, after, tenants.Change{Action: action, Target: id.String(), Before: before.Fields(), After: after.Fields()})
	})
	return after, batchdb.Wrapf(err, "change provider key %s", id)
}

// CheckedProviderKey stores the outcome of a test. It ignores a key deleted meanwhile.
func (db ProviderKeys) CheckedProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, check tenants.ProviderKeyCheck) error {
	err := batchdb.Exec(ctx, db.tenant(workspace), "UPDATE provider_keys SET checked_at = ?, check_ok = ?, check_status = ?, check_problem = ? WHERE workspace_id = ? AND id = ?",
		check.At, check.OK, check.Status, storable(check.Problem), workspace, id)
	return batchdb.Wrapf(err, "keep test of provider key %s", id)
}

// ResealProviderKey replaces the sealed secret of a provider key with a resealed one, unless it has been
// replaced already. It sends no notification because the secret in other replicas' memory stays the same.
func (db ProviderKeys) ResealProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, sealed []byte) error {
	err := batchdb.Exec(ctx, db.tenant(workspace), "UPDATE provider_keys SET sealed = ? WHERE workspace_id = ? AND id = ? AND sealed = ?", sealed, workspace, id, old)
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
		removed := tenants.Change{Action: tenants.ProviderKeyRemoved, Target: id.String(), Before: key.Fields()}
		return errors.Join(batchdb.Write(tx, "DELETE FROM provider_keys WHERE workspace_id = ? AND id = ?", workspace, id),
			modelPrices().drop(tx, workspace, id), modelLimits().drop(tx, workspace, id),
			providerKeyChanged(tx, workspace, tenants.ProviderKey{}, removed))
	})
	return batchdb.Wrapf(err, "delete provider key %s", id)
}

// providerKeyChanged performs the common steps of a key's change: one default for each provider, an audit
// entry, a notification to all replicas.
func providerKeyChanged(tx *gorm.DB, workspace tenants.WorkspaceID, key tenants.ProviderKey, change tenants.Change) error {
	var err error
	if key.Default {
		err = batchdb.Write(tx, "UPDATE provider_keys SET is_default = false WHERE workspace_id = ? AND provider = ? AND id <> ? AND is_default", workspace, key.Provider, key.ID)
	}
	return errors.Join(err, audit(tx, workspace, change), notify(tx, SettingsChannel, workspace.String()))
}

// lockProviderKey returns a key and locks it until the transaction ends.
func lockProviderKey(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.ProviderKey, error) {
	return find[tenants.ProviderKey](tx.Table("provider_keys").Where("workspace_id = ? AND id = ?", workspace, id).Clauses(locked()))
}

// ProviderKeyUses sums up the requests that the reader may see since a time by their provider key. It omits keys without
// requests.
func (db ProviderKeys) ProviderKeyUses(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (map[uuid.UUID]tenants.ProviderKeyUse, error) {
	// A key counts as refused from the first refusal after its last success.
	const statement = `
		WITH good AS (
			SELECT k.id, greatest(k.sealed_at, CASE WHEN k.check_ok THEN k.checked_at END, (
				SELECT max(e.at) FROM exchanges e
				WHERE e.workspace_id = k.workspace_id AND e.provider_key_id = k.id AND e.at >= @since AND e.id >= first_exchange_id(@since) AND e.status < 400)) AS at
			FROM provider_keys k WHERE k.workspace_id = @workspace
		)
		SELECT g.id, count(*) AS exchanges, coalesce(sum(e.cost_microusd), 0)::bigint AS cost_micro_usd,
			count(*) FILTER (WHERE e.error_from = 'provider' AND e.status IN (401, 403) AND e.at > g.at) AS rejected,
			min(e.at) FILTER (WHERE e.error_from = 'provider' AND e.status IN (401, 403) AND e.at > g.at) AS since,
			max(e.at) FILTER (WHERE e.error_from = 'provider') AS last_error_at,
			(array_agg(e.status ORDER BY e.at DESC) FILTER (WHERE e.error_from = 'provider'))[1] AS last_status,
			(array_agg(e.error_type ORDER BY e.at DESC) FILTER (WHERE e.error_from = 'provider'))[1] AS last_error
		FROM good g JOIN exchanges e ON e.workspace_id = @workspace AND e.provider_key_id = g.id AND e.at >= @since AND e.id >= first_exchange_id(@since)
			AND (@all OR e.api_key_id IN @keys)
		GROUP BY g.id`
	rows, err := batchdb.Scan[[]providerKeyUseRow](ctx, db.tenant(workspace), statement, visibleSince(ctx, workspace, since))
	uses := make(map[uuid.UUID]tenants.ProviderKeyUse, len(rows))
	for _, row := range rows {
		uses[row.ID] = row.Use
	}
	return uses, batchdb.Wrapf(err, "use of provider keys")
}

type providerKeyUseRow struct {
	ID  uuid.UUID
	Use tenants.ProviderKeyUse `gorm:"embedded"`
}
