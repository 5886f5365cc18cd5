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

// ModelPrices implements tenants.Data.
func (db Data) ModelPrices(ctx context.Context, workspace tenants.WorkspaceID) (prices []tenants.ModelPrice, err error) {
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		prices, err = findModelPrices(tx, workspace, "")
		return err
	})
	return prices, batchdb.Wrapf(err, "prices of workspace %s", workspace)
}

// ChangeModelPrices implements tenants.Data.
func (db Data) ChangeModelPrices(ctx context.Context, tenant tenants.Tenant, change func([]tenants.ModelPrice) ([]tenants.ModelPrice, error)) error {
	workspace := tenant.Workspace()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := findModelPrices(tx, workspace, " FOR UPDATE")
		if err != nil {
			return err
		}
		after, err := change(slices.Clone(before))
		if err != nil {
			return err
		}
		if after, err = tenants.CheckModelPrices(after); err != nil {
			return err
		}
		if err := checkProviderKeys(tx, workspace, after); err != nil {
			return err
		}
		raw, err := json.Marshal(after)
		if err != nil {
			return fmt.Errorf("write prices: %w", err)
		}
		if err := tx.Exec("UPDATE workspaces SET model_prices = ?::jsonb WHERE workspace_id = ?", string(raw), workspace).Error; err != nil {
			return err
		}
		noted := tenants.Change{Action: tenants.ModelPricesSet, Before: tenants.ModelPriceFields(before), After: tenants.ModelPriceFields(after)}
		if err := audit(tx, workspace, noted); err != nil {
			return err
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	return batchdb.Wrapf(err, "set prices of workspace %s", workspace)
}

func findModelPrices(tx *gorm.DB, workspace tenants.WorkspaceID, lock string) (prices []tenants.ModelPrice, err error) {
	var rows []struct{ ModelPrices []byte }
	err = tx.Raw("SELECT model_prices FROM workspaces WHERE workspace_id = ?"+lock, workspace).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(row.ModelPrices, &prices); err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	return prices, nil
}

// checkProviderKeys returns an Invalid for a price at a provider key that the workspace doesn't have.
func checkProviderKeys(tx *gorm.DB, workspace tenants.WorkspaceID, prices []tenants.ModelPrice) error {
	var known []uuid.UUID
	if err := tx.Raw("SELECT id FROM provider_keys WHERE workspace_id = ?", workspace).Scan(&known).Error; err != nil {
		return err
	}
	has := map[uuid.UUID]bool{uuid.Nil: true}
	for _, id := range known {
		has[id] = true
	}
	for i, price := range prices {
		if !has[price.ProviderKey] {
			return tenants.Invalid{Field: fmt.Sprintf("prices[%d].provider_key_id", i), Message: "is not a provider key of the workspace"}
		}
	}
	return nil
}

// dropModelPrices removes the prices at a provider key that is deleted.
func dropModelPrices(tx *gorm.DB, workspace tenants.WorkspaceID, key uuid.UUID) error {
	return tx.Exec(`UPDATE workspaces SET model_prices = (SELECT coalesce(jsonb_agg(price), '[]') FROM jsonb_array_elements(model_prices) price
		WHERE price->>'provider_key_id' IS DISTINCT FROM ?) WHERE workspace_id = ? AND model_prices <> '[]'`, key.String(), workspace).Error
}
