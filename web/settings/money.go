package settings

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// budgetsModel is the card with the budgets other than those of API keys.
type budgetsModel struct {
	Rows   []budgetRow
	Failed string

	Whose   components.FieldModel
	Choices []components.Option
	Fields  []components.FieldModel
}

type budgetRow struct {
	Name, Whose        string
	Budget             tenants.Budget
	InDay, InMonth     int64
	HasSum             bool // the budget is one shared sum; end users each have their own
	DayShare, MonthPct int  // percent spent
}

// rates returns the limits other than money.
func (r budgetRow) rates() string {
	var rates []string
	for _, limit := range tenants.QuotaLimits() {
		if !limit.IsMoney && limit.Of(r.Budget.Quota) > 0 {
			rates = append(rates, components.Limit(&limit, r.Budget.Quota))
		}
	}
	return strings.Join(rates, " · ")
}

// pricesModel is the card with the prices of models.
type pricesModel struct {
	Rows   []priceRow
	Failed string

	Key    components.FieldModel
	Keys   []components.Option
	Fields []components.FieldModel
}

type priceRow struct {
	tenants.ModelPrice

	KeyName string
}

// budgetOf is a form's name for a spender.
func budgetOf(spender tenants.Spender) string {
	if spender.Kind == tenants.MemberSpends {
		return string(spender.Kind) + ":" + spender.ID
	}
	return string(spender.Kind)
}

func (h *Handler) budgets(ctx context.Context, who tenants.Principal, typed func(string) string) (card budgetsModel, err error) {
	members, err := h.deps.Members.Members(ctx, who.Workspace.ID)
	if err != nil {
		return card, err
	}
	budgets, err := h.deps.Data.Budgets(ctx, who.Workspace.ID)
	if err != nil {
		return card, err
	}
	card.Whose = components.FieldModel{Label: "Budget for", Name: "whose", Value: typed("whose")}
	card.Choices = []components.Option{{Value: string(tenants.WorkspaceSpends), Label: "The workspace"}, {Value: string(tenants.EndUserSpends), Label: "Each end user"}, {Value: string(tenants.ProjectSpends), Label: "A project"}}
	names := map[string]string{}
	for _, member := range members {
		names[member.User.ID.String()] = member.User.Email
		card.Choices = append(card.Choices, components.Option{Value: budgetOf(tenants.Spender{Kind: tenants.MemberSpends, ID: member.User.ID.String()}), Label: member.User.Email})
	}
	card.Fields = []components.FieldModel{{Label: "Project", Name: "project", Hint: "For a project only: the value of the tag project.", Value: typed("project")}}
	for _, limit := range tenants.QuotaLimits() {
		field := components.FieldModel{Label: limit.Label, Name: limit.Name, Hint: limit.Hint, Value: typed(limit.Name)}
		if !limit.IsMoney {
			field.Hint = strings.TrimSpace(field.Hint + " For end users only.")
		}
		if limit.OfEndUser {
			card.Fields = append(card.Fields, field)
		}
	}
	day, month := tenants.SpendSpan(h.deps.Now())
	for _, budget := range budgets {
		row := budgetRow{Budget: budget, Whose: budgetOf(budget.Spender), HasSum: budget.Kind != tenants.EndUserSpends}
		switch budget.Kind {
		case tenants.MemberSpends:
			row.Name = cmp.Or(names[budget.ID], "Former member "+budget.ID)
		case tenants.ProjectSpends:
			row.Name = "Project " + budget.ID
		case tenants.EndUserSpends:
			row.Name = "Each end user"
		default:
			row.Name = "Workspace"
		}
		if row.HasSum {
			if row.InDay, row.InMonth, err = h.deps.Data.Spend(ctx, who.Workspace.ID, budget.Spender, day, month); err != nil {
				return card, err
			}
			row.DayShare, row.MonthPct = percent(row.InDay, budget.DayMicroUSD), percent(row.InMonth, budget.MonthMicroUSD)
		}
		card.Rows = append(card.Rows, row)
	}
	return card, nil
}

// percent returns the spent part of a budget; 0 without a budget.
func percent(spent, budget int64) int {
	if budget <= 0 {
		return 0
	}
	return int(math.Min(float64(spent)/float64(budget)*100, 999))
}

// spender returns the spender that a form names.
func spender(c echo.Context) tenants.Spender {
	kind, id, _ := strings.Cut(c.FormValue("whose"), ":")
	if kind == string(tenants.ProjectSpends) {
		id = strings.TrimSpace(c.FormValue("project"))
	}
	return tenants.Spender{Kind: tenants.SpenderKind(kind), ID: id}
}

// SetBudget sets a spender's budget; a budget without limits is removed.
func (h *Handler) SetBudget(c echo.Context, who tenants.Principal) error {
	budget := tenants.Budget{Spender: spender(c)}
	var wrong []error
	for _, limit := range tenants.QuotaLimits() {
		amount, err := limit.Parse(c.FormValue(limit.Name))
		limit.Set(&budget.Quota, amount)
		wrong = append(wrong, err)
	}
	err := errors.Join(wrong...)
	if err == nil {
		err = budget.Validate()
	}
	if err == nil {
		err = h.deps.Data.ChangeBudgets(c.Request().Context(), who.Workspace.ID, func(budgets []tenants.Budget) ([]tenants.Budget, error) {
			return append(slices.DeleteFunc(budgets, func(other tenants.Budget) bool { return other.Spender == budget.Spender }), budget), nil
		})
	}
	return h.changed(c, who, err, func(m *model, invalid tenants.Invalid) {
		if invalid.Field == "id" && budget.Kind == tenants.ProjectSpends {
			invalid.Field = "project"
		}
		if invalid.Field == "kind" || invalid.Field == "id" || invalid.Field == "budgets" {
			invalid.Field = "whose"
		}
		components.FieldErrors(invalid, &m.Budgets.Whose)
		fieldErrors(invalid, m.Budgets.Fields)
	})
}

// number reads a form's number; 0 if empty.
func number(c echo.Context, name, wanted string) (float64, error) {
	text := strings.ReplaceAll(strings.TrimSpace(c.FormValue(name)), ",", "")
	if text == "" {
		return 0, nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(value) > 1e12 {
		return 0, tenants.Invalid{Field: name, Message: wanted}
	}
	return value, nil
}

func fieldErrors(invalid tenants.Invalid, fields []components.FieldModel) {
	for i := range fields {
		components.FieldErrors(invalid, &fields[i])
	}
}

// changed answers a change of budgets with the current page, or with the error at its field.
func (h *Handler) changed(c echo.Context, who tenants.Principal, err error, show func(*model, tenants.Invalid)) error {
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Settings, "saved", "yes"))
	}
	invalid, is := errors.AsType[tenants.Invalid](err)
	if !is {
		return err
	}
	if cut := strings.LastIndex(invalid.Field, "]."); cut >= 0 { // without the place in the list
		invalid.Field = invalid.Field[cut+2:]
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { show(m, invalid) })
}

func (h *Handler) prices(ctx context.Context, who tenants.Principal, typed func(string) string) (card pricesModel, err error) {
	var names map[uuid.UUID]string
	if card.Keys, names, err = h.keyChoices(ctx, who); err != nil {
		return card, err
	}
	prices, err := h.deps.Data.ModelPrices(ctx, who.Workspace.ID)
	if err != nil {
		return card, err
	}
	card.Key = components.FieldModel{Label: "Provider key", Name: "provider_key_id", Value: typed("provider_key_id")}
	for _, field := range []components.FieldModel{
		{Label: "Model", Name: "model", Hint: "As clients name it."},
		{Label: "Input", Name: "input"}, {Label: "Output", Name: "output"}, {Label: "Cache read", Name: "cache_read"},
		{Label: "Cache write, 5 min", Name: "cache_write_5m"}, {Label: "Cache write, 1 h", Name: "cache_write_1h"},
	} {
		field.Value = typed(field.Name)
		card.Fields = append(card.Fields, field)
	}
	for _, price := range prices {
		card.Rows = append(card.Rows, priceRow{price, names[price.ProviderKey]})
	}
	return card, nil
}

// isAt reports whether a price is for a model at a provider key.
func isAt(model string, key uuid.UUID) func(tenants.ModelPrice) bool {
	return func(price tenants.ModelPrice) bool { return price.Model == model && price.ProviderKey == key }
}

// SetPrice sets the price of a model.
func (h *Handler) SetPrice(c echo.Context, who tenants.Principal) error {
	price := tenants.ModelPrice{Model: strings.TrimSpace(c.FormValue("model"))}
	var wrong []error
	for name, to := range map[string]*float64{
		"input": &price.Input, "output": &price.Output, "cache_read": &price.CacheRead, "cache_write_5m": &price.CacheWrite5m, "cache_write_1h": &price.CacheWrite1h,
	} {
		value, err := number(c, name, "must be an amount such as 3 or 0.25")
		*to, wrong = value, append(wrong, err)
	}
	for _, name := range []string{"input", "output"} {
		if strings.TrimSpace(c.FormValue(name)) == "" {
			wrong = append(wrong, tenants.Invalid{Field: name, Message: "is missing; enter 0 if it is free"})
		}
	}
	var err error
	price.ProviderKey, err = chosenKey(c, "provider_key_id")
	if err = errors.Join(append(wrong, err)...); err == nil {
		err = price.Validate()
	}
	if err == nil {
		err = h.deps.Data.ChangeModelPrices(c.Request().Context(), who.Workspace.ID, func(prices []tenants.ModelPrice) ([]tenants.ModelPrice, error) {
			return append(slices.DeleteFunc(prices, isAt(price.Model, price.ProviderKey)), price), nil
		})
	}
	return h.changed(c, who, err, func(m *model, invalid tenants.Invalid) {
		if invalid.Field == "prices" {
			invalid.Field = "model"
		}
		components.FieldErrors(invalid, &m.Prices.Key)
		fieldErrors(invalid, m.Prices.Fields)
	})
}

// RemovePrice removes a model's price, so that the list price applies again.
func (h *Handler) RemovePrice(c echo.Context, who tenants.Principal) error {
	key, err := uuid.Parse(c.FormValue("provider_key_id"))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	err = h.deps.Data.ChangeModelPrices(c.Request().Context(), who.Workspace.ID, func(prices []tenants.ModelPrice) ([]tenants.ModelPrice, error) {
		return slices.DeleteFunc(prices, isAt(c.FormValue("model"), key)), nil
	})
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Settings, "saved", "yes"))
}

// dollars formats a price for a million tokens.
func dollars(price float64) string {
	if price == 0 {
		return "–"
	}
	return "$" + strconv.FormatFloat(price, 'f', -1, 64)
}
