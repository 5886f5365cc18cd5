package manage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// alertLog bounds the list of deliveries.
const alertLog = 200

// alertHandler serves alerts. Channels are added on the dashboard.
type alertHandler struct {
	alerts tenants.Alerts
}

func (h alertHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/alerts", a.as(tenants.ManageSettings, withQuery(h.getAlerts)))
	group.PUT("/alerts", a.as(tenants.ManageSettings, withQuery(withBody(h.putAlerts))))
	group.GET("/alerts/deliveries", a.as(tenants.ManageSettings, withQuery(h.listDeliveries)))
}

func (h alertHandler) getAlerts(c echo.Context, who caller) error {
	alerts, err := h.alertsOf(c.Request().Context(), who.workspace)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, alerts)
}

// newAlerts is a request's change of alert settings.
type newAlerts struct {
	QuietFrom    *string `json:"quiet_from"`
	QuietTo      *string `json:"quiet_to"`
	TimeZone     *string `json:"time_zone"`
	ErrorPercent *int    `json:"error_percent"`
	SpendPercent *int    `json:"spend_percent"`
	SlowSeconds  *int    `json:"slow_seconds"`
	HeldPercent  *int    `json:"held_percent"`
}

// apply returns settings as they are after the change.
func (n newAlerts) apply(settings tenants.AlertSettings) tenants.AlertSettings {
	if n.QuietFrom != nil {
		settings.QuietFrom = tenants.ParseClockTime(*n.QuietFrom)
	}
	if n.QuietTo != nil {
		settings.QuietTo = tenants.ParseClockTime(*n.QuietTo)
	}
	set(&settings.TimeZone, n.TimeZone)
	set(&settings.ErrorPercent, n.ErrorPercent)
	set(&settings.SpendPercent, n.SpendPercent)
	set(&settings.SlowSeconds, n.SlowSeconds)
	set(&settings.HeldPercent, n.HeldPercent)
	return settings
}

func (h alertHandler) putAlerts(c echo.Context, who caller, asked newAlerts) error {
	ctx := c.Request().Context()
	now, err := h.alerts.Find(ctx, who.workspace)
	if err != nil {
		return err
	}
	if err := h.alerts.SaveSettings(ctx, who.workspace, asked.apply(now.Settings)); err != nil {
		return err
	}
	return h.getAlerts(c, who)
}

// deliveryJSON is an alert on its way to one channel.
type deliveryJSON struct {
	ID        uuid.UUID             `json:"id"`
	Channel   uuid.UUID             `json:"channel_id"`
	Rule      tenants.AlertRule     `json:"rule"`
	Title     string                `json:"title"`
	CreatedAt time.Time             `json:"created_at"`
	State     tenants.DeliveryState `json:"state"`
	Attempts  int                   `json:"attempts"`
	TriedAt   *time.Time            `json:"tried_at"` // null before the first attempt
	NextAt    *time.Time            `json:"next_at"`  // null without another attempt
	Status    int                   `json:"status"`   // of the newest answer; 0 without one
	Answer    string                `json:"answer"`
}

func (h alertHandler) listDeliveries(c echo.Context, who caller) error {
	found, err := h.alerts.Deliveries(c.Request().Context(), who.workspace, alertLog)
	if err != nil {
		return err
	}
	answer := struct {
		Data []deliveryJSON `json:"data"`
	}{make([]deliveryJSON, len(found))}
	for i := range found {
		delivery := &found[i]
		answer.Data[i] = deliveryJSON{
			ID: delivery.ID, Channel: delivery.Channel, Rule: delivery.Rule, Title: delivery.Title, CreatedAt: delivery.CreatedAt,
			State: delivery.State, Attempts: delivery.Attempts, Status: delivery.Status, Answer: delivery.Answer,
		}
		if !delivery.TriedAt.IsZero() {
			answer.Data[i].TriedAt = &delivery.TriedAt
		}
		if delivery.State == tenants.DeliveryWaiting {
			answer.Data[i].NextAt = &delivery.NextAt
		}
	}
	return c.JSON(http.StatusOK, answer)
}

// alertsJSON holds a workspace's alert settings, without URLs and secrets.
type alertsJSON struct {
	QuietFrom    string             `json:"quiet_from"` // equal to quiet_to without quiet hours
	QuietTo      string             `json:"quiet_to"`
	TimeZone     string             `json:"time_zone"`
	ErrorPercent int                `json:"error_percent"`
	SpendPercent int                `json:"spend_percent"`
	SlowSeconds  int                `json:"slow_seconds"`
	HeldPercent  int                `json:"held_percent"`
	Channels     []alertChannelJSON `json:"channels"`
}

type alertChannelJSON struct {
	ID        uuid.UUID           `json:"id"`
	Kind      tenants.AlertKind   `json:"kind"`
	Name      string              `json:"name"`
	Host      string              `json:"host,omitempty"`    // of a webhook
	User      *uuid.UUID          `json:"user_id,omitempty"` // who gets the mails
	Rules     []tenants.AlertRule `json:"rules"`
	Disabled  bool                `json:"disabled"`
	CreatedAt time.Time           `json:"created_at"`
}

// alertsOf returns a workspace's alert settings.
func (h alertHandler) alertsOf(ctx context.Context, workspace tenants.WorkspaceID) (alertsJSON, error) {
	found, err := h.alerts.Find(ctx, workspace)
	if err != nil {
		return alertsJSON{}, err
	}
	settings, channels := found.Settings, found.Channels
	alerts := alertsJSON{
		QuietFrom: tenants.ClockTime(settings.QuietFrom), QuietTo: tenants.ClockTime(settings.QuietTo), TimeZone: settings.TimeZone,
		ErrorPercent: settings.ErrorPercent, SpendPercent: settings.SpendPercent, SlowSeconds: settings.SlowSeconds, HeldPercent: settings.HeldPercent, Channels: make([]alertChannelJSON, len(channels)),
	}
	for i, channel := range channels {
		alerts.Channels[i] = alertChannelJSON{
			ID: channel.ID, Kind: channel.Kind, Name: channel.Name, Host: channel.Place, User: nullable(channel.User), Rules: channel.Rules,
			Disabled: channel.Disabled, CreatedAt: channel.CreatedAt,
		}
	}
	return alerts, nil
}

// budgetHandler serves the budgets of a workspace beside those of its keys.
type budgetHandler struct {
	budgets tenants.Data
	now     func() time.Time
}

func (h budgetHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/budgets", a.as(tenants.ReadConfig, h.listBudgets))
	group.PUT("/budgets", a.as(tenants.ManageSettings, withBody(h.putBudgets)))
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
	budgets = slices.DeleteFunc(budgets, func(budget tenants.Budget) bool { // they tell what others spent
		return !who.may(tenants.ReadSpend) && budget.Spender != tenants.Spender{Kind: tenants.MemberSpends, ID: who.person().String()}
	})
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

func (h budgetHandler) putBudgets(c echo.Context, who caller, asked newBudgets) error {
	if asked.Budgets == nil {
		return tenants.Invalid{Field: "budgets", Message: "is missing; an empty list takes all budgets away"}
	}
	budgets := make([]tenants.Budget, len(*asked.Budgets))
	for i, one := range *asked.Budgets {
		var err error
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
