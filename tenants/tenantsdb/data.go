package tenantsdb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Data stores the rules for storing and reading a workspace's data, and its retention.
type Data struct{ *core }

// DataSettings returns a workspace's data settings. It returns tenants.ErrNotFound.
func (db Data) DataSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.DataSettings, error) {
	settings, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) (tenants.DataSettings, error) { return findDataSettings(tx, workspace) })
	return settings, batchdb.Wrapf(err, "data settings of workspace %s", workspace)
}

// SetDataSettings sets a workspace's data settings on all replicas. It returns tenants.Invalid or
// tenants.ErrNotFound.
func (db Data) SetDataSettings(ctx context.Context, tenant tenants.Tenant, settings tenants.DataSettings) error {
	workspace := tenant.Workspace()
	if err := settings.Validate(); err != nil {
		return err
	}
	settings = settings.Normal()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := findDataSettings(tx, workspace, locked())
		if err != nil {
			return err
		}
		if reflect.DeepEqual(before, settings) {
			return nil
		}
		if err := update(tx, "workspaces", &settings, []string{"*"}, "workspace_id = ?", workspace); err != nil {
			return err
		}
		if !slices.Equal(before.Origins, settings.Origins) {
			if err := keepOrigins(tx, workspace); err != nil {
				return err
			}
		}
		if settings.EndUsers == tenants.EndUsersHashed {
			if err := batchdb.Write(tx, "UPDATE end_users SET name = NULL WHERE workspace_id = ? AND name IS NOT NULL", workspace); err != nil {
				return err
			}
		}
		change := tenants.Change{Action: tenants.SettingsSaved, Before: before.Fields(), After: settings.Fields()}
		if before.Text != settings.Text { // cached keys contain it
			if err := notify(tx, KeysChannel, workspace.String()); err != nil {
				return err
			}
		}
		return errors.Join(audit(tx, workspace, change), notify(tx, SettingsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "set data settings of workspace %s", workspace)
}

func findDataSettings(tx *gorm.DB, workspace tenants.WorkspaceID, clauses ...clause.Expression) (tenants.DataSettings, error) {
	return find[tenants.DataSettings](tx.Table("workspaces").Where("workspace_id = ?", workspace).Clauses(clauses...))
}

// RedactionCounts returns the number of replacements per kind of personal data in a workspace.
func (db Data) RedactionCounts(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.RedactionCount, error) {
	counts, err := batchdb.Scan[[]tenants.RedactionCount](ctx, db.tenant(workspace), "SELECT kind, found FROM redaction_counts WHERE workspace_id = ?", workspace)
	kinds := tenants.RedactionKinds()
	slices.SortFunc(counts, func(a, b tenants.RedactionCount) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	})
	return counts, batchdb.Wrapf(err, "counts of what was redacted in workspace %s", workspace)
}

// holder is a person who holds an API key or asks to read. It has their role in a workspace, "" for
// non-members, and the workspace's reading rights by role.
type holder struct {
	Person uuid.UUID
	Role   tenants.Role
	Text   tenants.TextPolicy `gorm:"embedded"`
	Owner  uuid.UUID          // the first owner of the workspace; set by personBehind only
}

const memberColumns = `coalesce(m.role, '') AS role, w.managers_read, w.members_read, w.viewers_read`

// reads returns the reading rights of the person now. Every path to text must check this.
func (m holder) reads() tenants.Reads { return m.Text.For(m.Role) }

// rights returns the rights of the person's keys.
func (m holder) rights() tenants.KeyRights {
	return tenants.KeyRights{Reads: m.reads()}
}

// memberOf returns a person as a member of a workspace.
func memberOf(tx *gorm.DB, workspace tenants.WorkspaceID, person uuid.UUID) (holder, error) {
	found := holder{Person: person}
	err := tx.Raw(`SELECT m.user_id AS person, `+memberColumns+`
		FROM members m JOIN workspaces w ON w.workspace_id = m.workspace_id
		WHERE m.workspace_id = ? AND m.user_id = ?`, workspace, person).Scan(&found).Error
	return found, err
}

// personBehind returns the person responsible for an API key, or the zero holder if absent. For a key that
// another key created, it follows that key to its person. start may also be a person.
func personBehind(tx *gorm.DB, workspace tenants.WorkspaceID, start uuid.UUID) (holder, error) {
	found, err := batchdb.Query[[]holder](tx, `WITH RECURSIVE behind (person) AS (
			SELECT ?::uuid
			UNION
			SELECT coalesce(k.person_id, k.created_by) FROM behind b JOIN api_keys k ON k.workspace_id = ? AND k.id = b.person)
		SELECT b.person, `+memberColumns+`,
			(SELECT o.user_id FROM members o WHERE o.workspace_id = w.workspace_id AND o.role = 'owner' ORDER BY o.created_at, o.user_id LIMIT 1) AS owner
		FROM behind b JOIN workspaces w ON w.workspace_id = ?
		LEFT JOIN members m ON m.workspace_id = ? AND m.user_id = b.person
		WHERE NOT EXISTS (SELECT FROM api_keys k WHERE k.workspace_id = ? AND k.id = b.person)`,
		start, workspace, workspace, workspace, workspace)
	return append(found, holder{})[0], err
}

// Reader returns a person's reading rights for a workspace's text, which are empty for non-members.
func (db Data) Reader(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID) (tenants.Reader, error) {
	reader, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) (tenants.Reader, error) {
		member, err := memberOf(tx, workspace, user)
		if err != nil {
			return tenants.Reader{}, err
		}
		return readerOf(tx, workspace, member)
	})
	return reader, batchdb.Wrapf(err, "what %s may read", user)
}

// KeyReader returns the reading rights of a presented API key.
func (db Data) KeyReader(ctx context.Context, key tenants.APIKey) (tenants.Reader, error) {
	var reader tenants.Reader
	err := db.inTenant(ctx, key.Workspace, func(tx *gorm.DB) error {
		behind, err := memberOf(tx, key.Workspace, key.Person)
		if err != nil {
			return err
		}
		if reader, err = readerOf(tx, key.Workspace, behind); err != nil || key.CreatedBy == key.Person {
			return err
		}
		creator, err := personBehind(tx, key.Workspace, key.CreatedBy)
		if err != nil {
			return err
		}
		created, err := readerOf(tx, key.Workspace, creator)
		reader = reader.And(created)
		return err
	})
	return reader, batchdb.Wrapf(err, "what API key %s may read", key.ID)
}

// readerOf returns a member's reading rights.
func readerOf(tx *gorm.DB, workspace tenants.WorkspaceID, member holder) (reader tenants.Reader, err error) {
	switch member.reads() {
	case tenants.ReadsAll:
		return tenants.Reader{All: true}, nil
	case tenants.ReadsOwn:
		reader.Own = true
	case tenants.ReadsNone:
	}
	if member.Role == "" {
		return reader, nil
	}
	err = tx.Raw(keysHeld, workspace, member.Person, workspace, member.Person).Scan(&reader.Held).Error
	if err == nil && reader.Own {
		err = tx.Raw("SELECT id FROM api_keys WHERE workspace_id = ? AND created_by = ?", workspace, member.Person).Scan(&reader.Keys).Error
	}
	return reader, err
}

// keysHeld selects the API keys that a person has created or is responsible for.
const keysHeld = "SELECT id FROM api_keys WHERE workspace_id = ? AND created_by = ?::uuid UNION " + keysBehind

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
	ctx = tenants.OwnWork(ctx) // a budget counts everyone's
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
