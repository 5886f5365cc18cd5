package tenantsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// modelList is a list of settings for models at provider keys, stored in the workspace's row.
type modelList[E any] struct {
	name   string // in the API; its column is model_<name>
	check  func([]E) ([]E, error)
	fields func([]E) tenants.Fields
	key    func(E) uuid.UUID
	action tenants.Action
}

func modelPrices() modelList[tenants.ModelPrice] {
	return modelList[tenants.ModelPrice]{
		"prices", tenants.CheckModelPrices, tenants.ModelPriceFields, func(price tenants.ModelPrice) uuid.UUID { return price.ProviderKey }, tenants.ModelPricesSet,
	}
}

func modelLimits() modelList[tenants.ModelLimit] {
	return modelList[tenants.ModelLimit]{
		"limits", tenants.CheckModelLimits, tenants.ModelLimitFields, func(limit tenants.ModelLimit) uuid.UUID { return limit.ProviderKey }, tenants.ModelLimitsSet,
	}
}

// ModelPrices implements tenants.Data.
func (db Data) ModelPrices(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelPrice, error) {
	return modelPrices().read(ctx, db.core, workspace)
}

// ChangeModelPrices implements tenants.Data.
func (db Data) ChangeModelPrices(ctx context.Context, tenant tenants.Tenant, change func([]tenants.ModelPrice) ([]tenants.ModelPrice, error)) error {
	return modelPrices().change(ctx, db.core, tenant, change)
}

// ModelLimits implements tenants.Data.
func (db Data) ModelLimits(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ModelLimit, error) {
	return modelLimits().read(ctx, db.core, workspace)
}

// ChangeModelLimits implements tenants.Data.
func (db Data) ChangeModelLimits(ctx context.Context, tenant tenants.Tenant, change func([]tenants.ModelLimit) ([]tenants.ModelLimit, error)) error {
	return modelLimits().change(ctx, db.core, tenant, change)
}

func (l modelList[E]) read(ctx context.Context, db *core, workspace tenants.WorkspaceID) (set []E, err error) {
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		set, err = l.find(tx, workspace, "")
		return err
	})
	return set, batchdb.Wrapf(err, "model %s of workspace %s", l.name, workspace)
}

func (l modelList[E]) change(ctx context.Context, db *core, tenant tenants.Tenant, change func([]E) ([]E, error)) error {
	workspace := tenant.Workspace()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := l.find(tx, workspace, " FOR UPDATE")
		if err != nil {
			return err
		}
		after, err := change(slices.Clone(before))
		if err != nil {
			return err
		}
		if after, err = l.check(after); err != nil {
			return err
		}
		if err := l.checkProviderKeys(tx, workspace, after); err != nil {
			return err
		}
		raw, err := json.Marshal(after)
		if err != nil {
			return fmt.Errorf("write model %s: %w", l.name, err)
		}
		if err := tx.Exec("UPDATE workspaces SET model_"+l.name+" = ?::jsonb WHERE workspace_id = ?", string(raw), workspace).Error; err != nil {
			return err
		}
		if err := audit(tx, workspace, tenants.Change{Action: l.action, Before: l.fields(before), After: l.fields(after)}); err != nil {
			return err
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	return batchdb.Wrapf(err, "set model %s of workspace %s", l.name, workspace)
}

func (l modelList[E]) find(tx *gorm.DB, workspace tenants.WorkspaceID, lock string) (set []E, err error) {
	var rows []struct{ List []byte }
	err = tx.Raw("SELECT model_"+l.name+" AS list FROM workspaces WHERE workspace_id = ?"+lock, workspace).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(row.List, &set); err != nil {
		return nil, fmt.Errorf("read model %s: %w", l.name, err)
	}
	return set, nil
}

// checkProviderKeys returns an Invalid for a setting with an unknown provider key.
func (l modelList[E]) checkProviderKeys(tx *gorm.DB, workspace tenants.WorkspaceID, set []E) error {
	var known []uuid.UUID
	if err := tx.Raw("SELECT id FROM provider_keys WHERE workspace_id = ?", workspace).Scan(&known).Error; err != nil {
		return err
	}
	for i, one := range set {
		if id := l.key(one); id != uuid.Nil && !slices.Contains(known, id) {
			return tenants.Invalid{Field: fmt.Sprintf("%s[%d].provider_key_id", l.name, i), Message: "is not a provider key of the workspace"}
		}
	}
	return nil
}

// drop removes the settings of a deleted provider key.
func (l modelList[E]) drop(tx *gorm.DB, workspace tenants.WorkspaceID, key uuid.UUID) error {
	column := "model_" + l.name
	return tx.Exec("UPDATE workspaces SET "+column+" = (SELECT coalesce(jsonb_agg(one), '[]') FROM jsonb_array_elements("+column+`) one
		WHERE one->>'provider_key_id' IS DISTINCT FROM ?) WHERE workspace_id = ? AND `+column+" <> '[]'", key.String(), workspace).Error
}
