package tenantsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// storedBudget is the stored form of a budget.
type storedBudget struct {
	Kind tenants.SpenderKind `json:"kind"`
	ID   string              `json:"id,omitempty"`
}

// Budgets implements tenants.Data.
func (db Data) Budgets(ctx context.Context, workspace tenants.WorkspaceID) (budgets []tenants.Budget, err error) {
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		budgets, err = findBudgets(tx, workspace, "")
		return err
	})
	return budgets, batchdb.Wrapf(err, "budgets of workspace %s", workspace)
}

// SetBudgets replaces the current budgets on all replicas. It returns a tenants.Invalid or
// tenants.ErrNotFound.
func (db Data) SetBudgets(ctx context.Context, tenant tenants.Tenant, budgets []tenants.Budget) error {
	return db.ChangeBudgets(ctx, tenant, func([]tenants.Budget) ([]tenants.Budget, error) { return budgets, nil })
}

// ChangeBudgets implements tenants.Data.
func (db Data) ChangeBudgets(ctx context.Context, tenant tenants.Tenant, change func([]tenants.Budget) ([]tenants.Budget, error)) error {
	workspace := tenant.Workspace()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := findBudgets(tx, workspace, " FOR UPDATE")
		if err != nil {
			return err
		}
		budgets, err := change(slices.Clone(before))
		if err != nil {
			return err
		}
		if budgets, err = tenants.CheckBudgets(budgets); err != nil {
			return err
		}
		stored := make([]json.RawMessage, len(budgets))
		for i, budget := range budgets {
			if stored[i], err = withQuota(storedBudget{Kind: budget.Kind, ID: budget.ID}, budget.Quota); err != nil {
				return fmt.Errorf("write budgets: %w", err)
			}
		}
		raw, err := json.Marshal(stored)
		if err != nil {
			return fmt.Errorf("write budgets: %w", err)
		}
		if err := batchdb.Write(tx, "UPDATE workspaces SET budgets = ?::jsonb WHERE workspace_id = ?", string(raw), workspace); err != nil {
			return err
		}
		change := tenants.Change{Action: tenants.BudgetsSet, Before: tenants.BudgetFields(before), After: tenants.BudgetFields(budgets)}
		if err := audit(tx, workspace, change); err != nil {
			return err
		}
		return notify(tx, SettingsChannel, workspace.String())
	})
	return batchdb.Wrapf(err, "set budgets of workspace %s", workspace)
}

func findBudgets(tx *gorm.DB, workspace tenants.WorkspaceID, lock string) ([]tenants.Budget, error) {
	var rows []struct{ Budgets []byte }
	err := tx.Raw("SELECT budgets FROM workspaces WHERE workspace_id = ?"+lock, workspace).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	if err != nil {
		return nil, err
	}
	var stored []json.RawMessage
	if err := json.Unmarshal(row.Budgets, &stored); err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	budgets := make([]tenants.Budget, len(stored))
	for i := range stored {
		var whose storedBudget
		if budgets[i].Quota, err = readWithQuota(stored[i], &whose); err != nil {
			return nil, fmt.Errorf("read budgets: %w", err)
		}
		budgets[i].Spender = tenants.Spender{Kind: whose.Kind, ID: whose.ID}
	}
	tenants.SortBudgets(budgets) // an earlier version may have stored them in another order
	return budgets, nil
}

// Spend implements tenants.Data. A person's spend includes the keys that they are responsible for now, and
// the keys created with these.
func (db Data) Spend(ctx context.Context, workspace tenants.WorkspaceID, who tenants.Spender, day, month time.Time) (inDay, inMonth int64, err error) {
	var row struct{ Day, Month int64 }
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		query := tx.Table("exchanges").Where("exchanges.workspace_id = ? AND exchanges.at >= ?", workspace, month)
		switch who.Kind {
		case tenants.KeySpends:
			query = query.Where("api_key_id = ?::uuid", who.ID)
		case tenants.MemberSpends:
			query = query.Where("api_key_id IN ("+keysBehind+")", workspace, who.ID)
		case tenants.ProjectSpends:
			query = query.Where(`id IN (SELECT exchange_id FROM exchange_tags WHERE workspace_id = ? AND tag = ? AND at >= ?)`,
				workspace, tenants.Tag{Name: tenants.ProjectTag, Value: who.ID}.String(), month)
		case tenants.EndUserSpends:
			query = query.Where(`id IN (SELECT exchange_id FROM exchange_tags WHERE workspace_id = ? AND tag = ? AND at >= ?)`, workspace, userTag+who.ID, month)
		case tenants.WorkspaceSpends: // from sums, because it may have millions of exchanges
			query = rollups(tx, workspace, tenants.UsageFilter{From: month, To: month.AddDate(0, 1, 0)}, 24*time.Hour, false)
		}
		return query.Select("coalesce(sum(cost_microusd) FILTER (WHERE at >= ?), 0)::bigint AS day, coalesce(sum(cost_microusd), 0)::bigint AS month", day).Take(&row).Error
	})
	return row.Day, row.Month, batchdb.Wrapf(err, "spend of %s %s", who.Kind, who.ID)
}

// withQuota returns a value as a JSON object with the members of a quota, without limits that are 0.
func withQuota(value any, quota tenants.Quota) ([]byte, error) {
	var members map[string]json.RawMessage
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, &members)
	}
	if err != nil {
		return nil, err
	}
	numbers := map[string]any{}
	for _, limit := range tenants.QuotaLimits() {
		if amount := limit.Of(quota); amount > 0 {
			numbers[limit.Stored] = amount
		}
	}
	for name, member := range members {
		numbers[name] = member
	}
	return json.Marshal(numbers)
}

// readWithQuota reverses withQuota: it reads an object into a value and returns the quota.
func readWithQuota(object []byte, value any) (quota tenants.Quota, err error) {
	var members map[string]json.RawMessage
	if err = json.Unmarshal(object, value); err == nil {
		err = json.Unmarshal(object, &members)
	}
	for _, limit := range tenants.QuotaLimits() {
		if member, is := members[limit.Stored]; is && err == nil {
			var amount int64
			err = json.Unmarshal(member, &amount)
			limit.Set(&quota, amount)
		}
	}
	return quota, err
}
