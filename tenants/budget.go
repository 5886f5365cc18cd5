package tenants

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Spender is a part of a workspace whose spend is counted.
type Spender struct {
	Kind SpenderKind
	ID   string // of an API key or a person; a project's name; an end user's hash; "" for the workspace
}

// SpenderKind is a kind of Spender.
type SpenderKind string

// The kinds of spenders. A person spends through the keys that they are responsible for, a project through
// requests with its name in the tag project, an end user through requests that name them.
const (
	KeySpends       SpenderKind = "key"
	MemberSpends    SpenderKind = "member"
	ProjectSpends   SpenderKind = "project"
	WorkspaceSpends SpenderKind = "workspace"
	EndUserSpends   SpenderKind = "end_user"
)

// ProjectTag is the name of the tag with a request's project: for budgets, and for the scope "project" of
// memory.
const ProjectTag = "project"

// MaxBudgets bounds the budgets of a workspace, except those of its keys.
const MaxBudgets = 200

// Budget bounds the spend of a spender other than an API key; 0 means no limit. For EndUserSpends it has no
// ID, because it applies to each end user of the workspace.
type Budget struct {
	Spender

	Quota
}

// Validate returns an Invalid that names the wrong field and its allowed values.
func (b Budget) Validate() error {
	switch b.Kind {
	case MemberSpends:
		if _, err := uuid.Parse(b.ID); err != nil {
			return Invalid{Field: "id", Message: "must be the id of a member"}
		}
	case ProjectSpends:
		if err := CheckTag("id", ProjectTag, b.ID); err != nil {
			return err
		}
	case WorkspaceSpends:
		if b.ID != "" {
			return Invalid{Field: "id", Message: "must be left out: the workspace has one budget"}
		}
	case EndUserSpends:
		if b.ID != "" {
			return Invalid{Field: "id", Message: "must be left out: the budget is that of each end user"}
		}
	default:
		return Invalid{Field: "kind", Message: fmt.Sprintf("is %q, which is not one of workspace, member, project, end_user", string(b.Kind))}
	}
	for _, limit := range QuotaLimits() {
		if limit.Of(b.Quota) == 0 || limit.IsMoney || limit.OfEndUser && b.Kind == EndUserSpends {
			continue
		}
		if limit.OfEndUser {
			return Invalid{Field: limit.Name, Message: "must be left out: only end users have it here"}
		}
		return Invalid{Field: limit.Name, Message: "must be left out: only API keys have it"}
	}
	return b.Quota.validate()
}

// CheckBudgets returns budgets in order (see SortBudgets), without budgets that have no limit. The error is
// an Invalid that names the position of the wrong one.
func CheckBudgets(budgets []Budget) ([]Budget, error) {
	if len(budgets) > MaxBudgets {
		return nil, Invalid{Field: "budgets", Message: fmt.Sprintf("must have at most %d entries", MaxBudgets)}
	}
	seen := make(map[Spender]bool, len(budgets))
	var checked []Budget
	for i, budget := range budgets {
		err := budget.Validate()
		if err == nil && seen[budget.Spender] {
			err = Invalid{Field: "id", Message: "has a budget in the list already"}
		}
		if invalid, is := errors.AsType[Invalid](err); is {
			return nil, Invalid{Field: fmt.Sprintf("budgets[%d].%s", i, invalid.Field), Message: invalid.Message}
		}
		seen[budget.Spender] = true
		if !budget.IsUnlimited() {
			checked = append(checked, budget)
		}
	}
	SortBudgets(checked)
	return checked, nil
}

// forecastAfter is the part of a period that must be over before a forecast.
const forecastAfter = 0.25

// Forecast extrapolates usage to the end of a period, at the rate so far. It makes no forecast before a
// quarter of the period is over.
func Forecast(used int64, from, to, now time.Time) (int64, bool) {
	whole, gone := to.Sub(from), now.Sub(from)
	if whole <= 0 || gone > whole || float64(gone) < forecastAfter*float64(whole) {
		return 0, false
	}
	return int64(float64(used) * float64(whole) / float64(gone)), true
}

// SortBudgets sorts budgets in display order: the workspace, projects, members, API keys, end users; then by
// id.
func SortBudgets(budgets []Budget) {
	kinds := []SpenderKind{WorkspaceSpends, ProjectSpends, MemberSpends, KeySpends, EndUserSpends}
	slices.SortFunc(budgets, func(a, b Budget) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.ID, b.ID))
	})
}

// BudgetFields returns the budgets' fields for the audit log.
func BudgetFields(budgets []Budget) Fields {
	fields := Fields{}
	for _, budget := range budgets {
		name := string(budget.Kind)
		if budget.ID != "" {
			name += " " + budget.ID
		}
		budget.fields(fields, name+" ")
	}
	return fields
}
