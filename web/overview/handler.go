// Package overview is the first page of the dashboard, with the proxy's activity and savings, and the page of
// spend by person.
package overview

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"palimpsest/pipeline/session/sessiondb"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Deps are the page's sources.
type Deps struct {
	Costs        sessiondb.Browser
	Pipelines    tenants.Pipelines
	Usage        tenants.UsageReader
	Exchanges    tenants.Exchanges
	APIKeys      tenants.APIKeys
	ProviderKeys tenants.ProviderKeys
	Readers      tenants.Data

	TriggerAdvice *previewdb.Store
	Models        *tokens.Models // optional: without them, models' retirements are not shown

	// Health returns the latest health checks, for operators. It does not wait.
	Health func(ctx context.Context) []tenants.Check

	Defaults pipeline.Layer // the pipeline of a workspace without one of its own

	Log *slog.Logger
	Now func() time.Time
}

// Handler handles the page's requests.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps} }

// Show shows the page: the figures, or the first steps before the first request.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	frame := layout.Frame{Title: "Overview", Section: layout.Overview, Who: who}
	newest, err := h.newest(tenants.OwnWork(ctx), who) // so that the page is the same for all members
	if reference := h.failed(ctx, "newest request", err); reference == "" && newest == nil {
		steps, err := h.steps(ctx, who, nil)
		choices, settingsFailed := h.choices(ctx, who)
		return layout.Page(c, http.StatusOK, frame, firstView(steps, choices, settingsFailed, h.failed(ctx, "steps", err)))
	}
	model := &model{
		query: newQuery(c.QueryParams(), layout.Zone(c.Request()), h.deps.Now()), Now: h.deps.Now(), Role: who.Role, Plan: layout.Plan(c),
	}
	see(model, who)
	h.fill(ctx, who, model)
	status := http.StatusOK
	if model.isWrong() {
		status = http.StatusUnprocessableEntity
	}
	return layout.Page(c, status, frame, view(model))
}

// FirstRequest answers with only the first steps.
func (h *Handler) FirstRequest(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	newest, err := h.newest(ctx, who)
	if err != nil {
		return err
	}
	steps, err := h.steps(ctx, who, newest)
	if err != nil {
		return err
	}
	steps.Bare = c.QueryParam("bare") != ""
	return layout.Fragment(c, http.StatusOK, components.Steps(steps))
}

// newest returns the workspace's newest exchange, or nil before the first.
func (h *Handler) newest(ctx context.Context, who tenants.Principal) (*tenants.Exchange, error) {
	newest, _, err := h.deps.Exchanges.Exchanges(ctx, who.Workspace.ID, tenants.ExchangeFilter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	return &newest[0], nil
}

// steps returns the workspace's setup progress.
func (h *Handler) steps(ctx context.Context, who tenants.Principal, newest *tenants.Exchange) (components.StepsModel, error) {
	providers, err := h.deps.ProviderKeys.ProviderKeys(ctx, who.Workspace.ID)
	if err != nil {
		return components.StepsModel{}, err
	}
	keys, err := h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
	if err != nil {
		return components.StepsModel{}, err
	}
	steps := components.NewSteps(providers, active(keys, h.deps.Now()), newest)
	if newest != nil && who.Role.May(tenants.ReadSessions) {
		steps.Request = paths.Request(newest.ID)
	}
	return steps, nil
}

// atOnce limits the cards that are read concurrently, because each holds a connection that the proxy may
// need.
const atOnce = 3

// fill reads the cards, some concurrently. A failed card shows its error; the others stay.
func (h *Handler) fill(ctx context.Context, who tenants.Principal, model *model) {
	workspace := who.Workspace.ID
	var cards errgroup.Group
	cards.SetLimit(atOnce)
	card := func(name string, failed *string, read func() error) {
		cards.Go(func() error {
			defer func() { // otherwise a panic would end the program instead of only the card
				if recovered := recover(); recovered != nil {
					*failed = h.failed(ctx, name, fmt.Errorf("panic: %v", recovered))
				}
			}()
			*failed = h.failed(ctx, name, read())
			return nil
		})
	}
	card("attention", &model.AttentionFailed, func() error { return h.attend(ctx, who, model) })
	card("series", &model.PointsFailed, func() (err error) {
		model.Points, err = h.deps.Usage.Series(ctx, workspace, model.Filter, model.Span.step)
		return err
	})
	card("totals", &model.TotalsFailed, func() (err error) {
		if model.Totals, err = h.deps.Usage.Totals(ctx, workspace, model.Filter); err == nil {
			model.Before, err = h.deps.Usage.Totals(ctx, workspace, model.Filter.Before())
		}
		return err
	})
	card("rows", &model.RowsFailed, func() (err error) {
		model.Rows, err = h.deps.Usage.Usage(ctx, workspace, model.By, model.Filter)
		return err
	})
	card("misses", &model.MissesFailed, func() error {
		balance, err := h.deps.Usage.Balance(ctx, workspace, model.Filter)
		model.Misses = balance.Misses
		return err
	})
	card("answers", &model.AnswersFailed, func() (err error) {
		model.Answered, model.Answers, err = h.deps.Usage.Answers(ctx, workspace, model.Filter)
		return err
	})
	card("month", &model.MonthFailed, func() error { return h.month(ctx, who, model) })
	card("trigger", new(string), func() error { return h.advised(ctx, who, model) })
	card("choices", &model.ChoicesFailed, func() (err error) {
		model.Choices, err = h.deps.Usage.UsageChoices(ctx, workspace, model.Filter)
		return err
	})
	_ = cards.Wait() // a failed card shows its own error
}

// failed logs an error and returns its reference in the log; "" without an error.
func (h *Handler) failed(ctx context.Context, card string, err error) string {
	return layout.Reference(ctx, h.deps.Log, "overview", card, err)
}

// active counts the working keys.
func active(keys []tenants.APIKey, now time.Time) int {
	count := 0
	for _, key := range keys {
		if key.RevokedAt == nil && (key.ExpiresAt == nil || key.ExpiresAt.After(now)) {
			count++
		}
	}
	return count
}
