package manage

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// configBudgetJSON is a budget in a file, which identifies a member by mail address or by id.
type configBudgetJSON struct {
	Kind tenants.SpenderKind `json:"kind"`
	ID   string              `json:"id,omitempty"`
	tenants.QuotaChange
}

// budgetsInFile returns the budgets beside those of keys in the form of a file.
func (c *configured) budgetsInFile() []configBudgetJSON {
	return each(c.budgets, func(budget tenants.Budget) configBudgetJSON { return budgetInFile(budget, c.members) })
}

func budgetInFile(budget tenants.Budget, members []tenants.Member) configBudgetJSON {
	written := configBudgetJSON{Kind: budget.Kind, ID: budget.ID, QuotaChange: budgetQuota(&budget)}
	for _, member := range members {
		if budget.Kind == tenants.MemberSpends && member.User.ID.String() == budget.ID {
			written.ID = member.User.Email
		}
	}
	return written
}

// takeBudgets sets the budgets in a file; others stay as they are.
func (i *configImport) takeBudgets(ctx context.Context, part configMember) error {
	wanted := slices.Clone(i.now.budgets)
	names := append([]string{"kind", "id"}, quotaNames(func(limit *tenants.Limit) bool { return limit.IsMoney || limit.OfEndUser })...)
	for _, item := range i.items(part) {
		var asked newBudget
		if !takeAll(&i.configReader, item, &asked, names...) {
			continue
		}
		email := asked.ID
		if _, err := uuid.Parse(asked.ID); asked.Kind == tenants.MemberSpends && err != nil {
			at := slices.IndexFunc(i.now.members, func(member tenants.Member) bool { return strings.EqualFold(member.User.Email, email) })
			if at < 0 {
				i.byHandf("%s is not a member here: invite them, then import again to set their budget.", email)
				continue
			}
			asked.ID = i.now.members[at].User.ID.String()
		}
		budget, err := asked.budget()
		if err == nil {
			err = budget.Validate()
		}
		if err != nil {
			if err := i.refused(item.place, err); err != nil {
				return err
			}
			continue
		}
		at := slices.IndexFunc(wanted, func(other tenants.Budget) bool { return other.Spender == budget.Spender })
		if at < 0 {
			wanted = append(wanted, budget)
			continue
		}
		wanted[at] = budget
	}
	if len(i.faults) > 0 || !i.changed(part.place, tenants.BudgetFields(i.now.budgets), tenants.BudgetFields(wanted)) {
		return nil
	}
	return i.refused(part.place, i.Data.SetBudgets(ctx, i.tenant, wanted))
}
