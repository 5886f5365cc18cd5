package manage

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// budgetHandler serves the budgets of a workspace beside those of its keys.
type budgetHandler struct {
	budgets tenants.Data
	now     func() time.Time
}

func (h budgetHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/budgets", a.as(tenants.ReadConfig, h.listBudgets))
	group.PUT("/budgets", a.as(tenants.ManageSettings, h.putBudgets))
}

type budgetJSON struct {
	Kind tenants.SpenderKind `json:"kind"`
	ID   string              `json:"id,omitempty"`
	tenants.QuotaChange
	SpentDay   float64 `json:"spent_day_usd"`
	SpentMonth float64 `json:"spent_month_usd"`
}

// budgetQuota returns the limits to show for a budget: money always, others if set.
func budgetQuota(budget *tenants.Budget) tenants.QuotaChange {
	return budget.Quota.Change(func(limit *tenants.Limit, amount int64) bool { return limit.IsMoney || amount > 0 })
}

func (h budgetHandler) listBudgets(c echo.Context, who caller) error {
	ctx := c.Request().Context()
	budgets, err := h.budgets.Budgets(ctx, who.workspace)
	if err != nil {
		return err
	}
	answer := make([]budgetJSON, len(budgets))
	day, month := tenants.SpendSpan(h.now())
	for i, budget := range budgets {
		inDay, inMonth, err := h.budgets.Spend(ctx, who.workspace, budget.Spender, day, month)
		if err != nil {
			return err
		}
		answer[i] = budgetJSON{Kind: budget.Kind, ID: budget.ID, SpentDay: usd(inDay), SpentMonth: usd(inMonth), QuotaChange: budgetQuota(&budget)}
	}
	return answerPage(c, answer, "")
}

// newBudgets is the body of a request to set budgets. It replaces all of them.
type newBudgets struct {
	Budgets *[]newBudget `json:"budgets"`
}

type newBudget struct {
	Kind tenants.SpenderKind `json:"kind"`
	ID   string              `json:"id"`
	tenants.QuotaChange
}

// budget returns a requested budget. The error is a tenants.Invalid.
func (b newBudget) budget() (tenants.Budget, error) {
	budget := tenants.Budget{Spender: tenants.Spender{Kind: b.Kind, ID: b.ID}}
	return budget, b.QuotaChange.Apply(&budget.Quota)
}

func (h budgetHandler) putBudgets(c echo.Context, who caller) error {
	asked, err := readJSON[newBudgets](c)
	if err != nil {
		return err
	}
	if asked.Budgets == nil {
		return tenants.Invalid{Field: "budgets", Message: "is missing; an empty list takes all budgets away"}
	}
	budgets := make([]tenants.Budget, len(*asked.Budgets))
	for i, one := range *asked.Budgets {
		if budgets[i], err = one.budget(); err != nil {
			invalid, _ := errors.AsType[tenants.Invalid](err)
			return tenants.Invalid{Field: fmt.Sprintf("budgets[%d].%s", i, invalid.Field), Message: invalid.Message}
		}
	}
	if err := h.budgets.SetBudgets(c.Request().Context(), who.workspace, budgets); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func usd(micro int64) float64 { return float64(micro) / 1e6 }
