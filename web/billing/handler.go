// Package billing is the page of a workspace's plan, its use, and its bills.
package billing

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/billing"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the page's requests.
type Handler struct {
	service *billing.Service
	log     *slog.Logger
	now     func() time.Time
}

// New returns a Handler.
func New(service *billing.Service, log *slog.Logger, now func() time.Time) *Handler {
	return &Handler{service: service, log: log, now: now}
}

// Show shows the plan, the usage and the bills.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	returned := c.QueryParam("checkout") == "done"
	if returned {
		if err := h.service.Returned(c.Request().Context(), who.Workspace.ID); err != nil {
			h.log.WarnContext(c.Request().Context(), "read account after checkout", "error", err)
		}
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Returned = returned })
}

// Checkout redirects to Stripe's checkout of a plan.
func (h *Handler) Checkout(c echo.Context, who tenants.Principal) error {
	url, err := h.service.Checkout(c.Request().Context(), who.Workspace, who.User.Email, c.FormValue("plan"))
	return h.lead(c, who, url, err)
}

// Portal redirects to Stripe's portal, where the plan is changed and paid.
func (h *Handler) Portal(c echo.Context, who tenants.Principal) error {
	url, err := h.service.Portal(c.Request().Context(), who.Workspace.ID)
	return h.lead(c, who, url, err)
}

// lead redirects a person to Stripe, or explains why it can't.
func (h *Handler) lead(c echo.Context, who tenants.Principal, url string, err error) error {
	invalid, isInvalid := errors.AsType[tenants.Invalid](err)
	switch {
	case err == nil:
		return layout.Redirect(c, url)
	case errors.Is(err, tenants.ErrBillingOff):
		return layout.Redirect(c, paths.Billing)
	case isInvalid:
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Problem = "This plan is not sold here: it " + invalid.Message + "." })
	case errors.Is(err, tenants.ErrConflict):
		return h.page(c, who, http.StatusConflict, func(m *model) {
			m.Problem = "This workspace has a subscription already. Change its plan with the button Manage at Stripe."
		})
	case errors.Is(err, tenants.ErrNotFound):
		return h.page(c, who, http.StatusNotFound, func(m *model) { m.Problem = "The workspace has no subscription yet. Choose a plan first." })
	}
	reference := h.failed(c, "lead to Stripe", err)
	return h.page(c, who, http.StatusBadGateway, func(m *model) {
		m.Problem = "Stripe did not answer, so your plan is unchanged. The proxy keeps working. Try again in a moment. Reference " + reference + "."
	})
}

// page answers with the page.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	overview, err := h.service.Overview(c.Request().Context(), who.Workspace.ID)
	model := newModel(overview, h.now(), layout.Zone(c.Request()))
	if model.PlanFailed = h.failed(c, "plan", err); err == nil && h.service.IsOn() {
		layout.WithPlan(c, overview) // it may have changed since the request came
		h.ask(c, overview, &model)
		h.letLead(c)
	}
	change(&model)
	return layout.Page(c, status, layout.Frame{Title: "Billing", Section: layout.Billing, Who: who}, view(model))
}

// ask asks Stripe for data that is only there. A part that fails leaves the others unchanged.
func (h *Handler) ask(c echo.Context, overview billing.Overview, model *model) {
	ctx := c.Request().Context()
	offers, err := h.service.Offers(ctx)
	model.OffersFailed = h.failed(c, "prices", err)
	model.offer(offers)
	model.Invoices, err = h.service.Invoices(ctx, overview.Account)
	model.InvoicesFailed = h.failed(c, "invoices", err)
}

// letLead allows the page's forms to redirect to Stripe, which the policy of every other page forbids.
func (h *Handler) letLead(c echo.Context) {
	header := c.Response().Header()
	policy := header.Get(echo.HeaderContentSecurityPolicy)
	allowed := strings.Replace(policy, "form-action 'self'", "form-action 'self' "+strings.Join(h.service.Origins(), " "), 1)
	header.Set(echo.HeaderContentSecurityPolicy, allowed)
}

// failed logs an error and returns its reference in the log; "" without an error.
func (h *Handler) failed(c echo.Context, what string, err error) string {
	return layout.Reference(c.Request().Context(), h.log, "billing", what, err)
}
