// Package operator is the page for operators of the installation, with its workspaces, their figures and its
// health. It shows no message text.
package operator

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

const (
	rows    = 50 // on a page
	entries = 20 // of the log
)

// Health checks the parts of the installation.
type Health func(ctx context.Context) []tenants.Check

// Handler handles the page's requests.
type Handler struct {
	store  tenants.Operators
	health Health
	log    *slog.Logger
	now    func() time.Time
}

// New returns a Handler.
func New(store tenants.Operators, health Health, log *slog.Logger, now func() time.Time) *Handler {
	return &Handler{store: store, health: health, log: log, now: now}
}

// List shows the workspaces, the installation's health and the log.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, nil)
}

// Ask asks whether to suspend a workspace, or to resume a suspended one.
func (h *Handler) Ask(c echo.Context, who tenants.Principal) error {
	found, err := h.found(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, newDialog(found, "", "", nil))
}

// Suspend suspends a workspace after its name was typed.
func (h *Handler) Suspend(c echo.Context, who tenants.Principal) error {
	return h.change(c, who, h.store.SuspendWorkspace)
}

// Resume ends the suspension of a workspace after its name was typed.
func (h *Handler) Resume(c echo.Context, who tenants.Principal) error {
	return h.change(c, who, h.store.ResumeWorkspace)
}

func (h *Handler) change(c echo.Context, who tenants.Principal, do func(ctx context.Context, operator uuid.UUID, workspace tenants.WorkspaceID, reason string) error) error {
	found, err := h.found(c, who)
	if err != nil {
		return err
	}
	typed := strings.TrimSpace(c.FormValue("confirm"))
	reason, err := tenants.CheckReason(c.FormValue("reason"))
	if err == nil && typed != strings.TrimSpace(found.Name) {
		err = tenants.Invalid{Field: "confirm", Message: "must be the workspace's name: type " + found.Name}
	}
	if err != nil {
		return h.page(c, who, http.StatusUnprocessableEntity, newDialog(found, c.FormValue("reason"), typed, err))
	}
	if err := do(c.Request().Context(), who.User.ID, found.ID, reason); err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Operator, "q", found.ID.String()))
}

// found returns the workspace in the path.
func (h *Handler) found(c echo.Context, who tenants.Principal) (tenants.OperatedWorkspace, error) {
	id, err := tenants.ParseWorkspaceID(c.Param("id"))
	if err != nil {
		return tenants.OperatedWorkspace{}, tenants.ErrNotFound
	}
	return h.store.OperatedWorkspace(c.Request().Context(), who.User.ID, id)
}

func (h *Handler) page(c echo.Context, who tenants.Principal, status int, dialog *dialogModel) error {
	ctx := c.Request().Context()
	page := model{Search: strings.TrimSpace(c.QueryParam("q")), Now: h.now(), Dialog: dialog}
	after, err := tenants.ParseWorkspaceID(c.QueryParam("after"))
	if err != nil && c.QueryParam("after") != "" {
		return tenants.ErrNotFound
	}
	err = h.list(ctx, who, after, &page)
	if errors.Is(err, tenants.ErrNotFound) {
		return err // the requested page, or the person is no longer an operator
	}
	page.WorkspacesFailed = layout.Reference(ctx, h.log, "operator", "workspaces", err)
	page.Log, err = h.store.OperatorLog(ctx, who.User.ID, entries)
	page.LogFailed = layout.Reference(ctx, h.log, "operator", "log", err)
	page.Health = h.health(ctx)
	return layout.Page(c, status, layout.Frame{Title: "Operator", Section: layout.Operator, Who: who}, view(page))
}

// list reads the workspaces after a cursor; zero means the first page.
func (h *Handler) list(ctx context.Context, who tenants.Principal, after tenants.WorkspaceID, page *model) error {
	query := tenants.OperatedQuery{Search: page.Search, Limit: rows + 1}
	if !after.IsZero() {
		row, err := h.store.OperatedWorkspace(ctx, who.User.ID, after)
		if err != nil {
			return err
		}
		query.BeforeAt, query.BeforeID = row.CreatedAt, row.ID
	}
	found, err := h.store.OperatedWorkspaces(ctx, who.User.ID, query)
	if len(found) > rows {
		found = found[:rows]
		page.Next = paths.With(paths.Operator, "q", page.Search, "after", found[rows-1].ID.String())
	}
	page.Workspaces = found
	return err
}

// again is the address that reloads the page.
func (m model) again() string { return paths.With(paths.Operator, "q", m.Search) }

// model is the page's data.
type model struct {
	Workspaces []tenants.OperatedWorkspace
	Next       string // path of the next page; "" on the last
	Search     string
	Health     []tenants.Check
	Log        []tenants.OperatorEntry
	Now        time.Time
	Dialog     *dialogModel // the question about a workspace, or nil

	WorkspacesFailed, LogFailed string // references in the log; "" if loaded
}

// dialogModel is the question whether to suspend or resume a workspace.
type dialogModel struct {
	Workspace       tenants.OperatedWorkspace
	Reason, Confirm components.FieldModel
}

func newDialog(workspace tenants.OperatedWorkspace, reason, typed string, err error) *dialogModel {
	dialog := &dialogModel{
		Workspace: workspace,
		Reason:    components.FieldModel{Label: "Reason", Name: "reason", Value: reason, Hint: "Shown to its members and kept in both logs."},
		Confirm:   components.FieldModel{Label: "Type " + workspace.Name + " to confirm", Name: "confirm", Value: typed},
	}
	components.FieldErrors(err, &dialog.Reason, &dialog.Confirm)
	return dialog
}

// failedShare formats the share of failed requests.
func failedShare(workspace tenants.OperatedWorkspace) string {
	return components.Share(workspace.Failures, workspace.Exchanges)
}

// owner returns the address of a workspace's first owner, or a text if it has no owner.
func owner(workspace tenants.OperatedWorkspace) string {
	return cmp.Or(workspace.Owner, "no owner")
}

// told describes an entry of the log.
func told(entry tenants.OperatorEntry) string {
	if entry.Action == tenants.OperatorFirst {
		return entry.Actor + " signed up first and operates this installation"
	}
	done := map[tenants.Action]string{
		tenants.WorkspaceSuspended: "suspended", tenants.WorkspaceResumed: "resumed", tenants.OperatorAppointed: "made an operator of",
		tenants.SubscriptionEnded:    "ended, as their workspace was deleted, the subscriptions of",
		tenants.SubscriptionNotEnded: "could not end, though their workspace was deleted, the subscriptions of",
	}[entry.Action]
	return entry.Actor + " " + done + " " + entry.Name
}
