// Package settings is the page of a workspace's settings: its readers, its retention, and the export and
// deletion of its data.
package settings

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Deps are the page's services.
type Deps struct {
	Data         tenants.Data
	Members      tenants.Members
	ProviderKeys tenants.ProviderKeys
	Deletion     tenants.Deletion
	ImportConfig ImportConfig
	Log          *slog.Logger
	Now          func() time.Time
}

// Handler handles the page's requests.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps} }

// Show shows the page.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Saved = c.QueryParam("saved") != "" })
}

// Save saves the readers and the retention.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	wanted := tenants.DataSettings{
		TimeZone: strings.TrimSpace(c.FormValue("time_zone")), NoStore: c.FormValue("no_store") != "", OwnCredentials: c.FormValue("own_credentials") != "",
		Text: tenants.TextPolicy{
			Managers: tenants.Reads(c.FormValue("managers_read")), Members: tenants.Reads(c.FormValue("members_read")),
			Viewers: tenants.Reads(c.FormValue("viewers_read")),
		},
		EndUsers: tenants.EndUserIDs(c.FormValue("end_users")),
		Redact:   tenants.Redaction{Names: linesOf(c.FormValue("redact_names"))},
		Origins:  linesOf(c.FormValue("browser_origins")),
		Failover: tenants.Failover(c.FormValue("failover")),
	}
	for _, kind := range c.Request().Form["redact"] {
		wanted.Redact.Kinds = append(wanted.Redact.Kinds, tenants.RedactionKind(kind))
	}
	err := h.deps.Data.SetDataSettings(c.Request().Context(), who.Workspace.ID, wanted)
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Settings, "saved", "yes"))
	}
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Form = newForm(wanted, err) })
}

// linesOf returns the non-empty lines of a text.
func linesOf(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// SaveRetention saves the retention of sessions.
func (h *Handler) SaveRetention(c echo.Context, who tenants.Principal) error {
	typed := strings.TrimSpace(c.FormValue("days"))
	days, err := strconv.Atoi(typed)
	if typed == "" {
		days, err = 0, nil
	}
	if err != nil {
		days = -1 // an invalid value
	}
	err = h.deps.Data.SetRetention(c.Request().Context(), who.Workspace.ID, tenants.Retention{Days: days})
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Settings, "saved", "yes"))
	}
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Days = newDays(typed, err) })
}

// ConfirmDelete asks whether to delete the workspace.
func (h *Handler) ConfirmDelete(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Delete = newDelete(who.Workspace.Name, "") })
}

// Delete deletes the workspace after the person typed its name and their password.
func (h *Handler) Delete(c echo.Context, who tenants.Principal) error {
	ctx, typed := c.Request().Context(), strings.TrimSpace(c.FormValue("confirm"))
	form := newDelete(who.Workspace.Name, typed)
	err := h.deps.Deletion.DeleteConfirmed(ctx, who, typed, c.FormValue("password"), c.RealIP())
	wrong, isWrong := errors.AsType[tenants.Invalid](err)
	switch {
	case isWrong && wrong.Field == "name":
		form.Confirm.Error = "That is not the name of the workspace. Nothing was deleted."
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Delete = form })
	case isWrong:
		form.Password.Error = "The password is wrong. Nothing was deleted."
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Delete = form })
	case errors.Is(err, tenants.ErrTooMany):
		form.Password.Error = "Too many attempts. Try again later. Nothing was deleted."
		return h.page(c, who, http.StatusTooManyRequests, func(m *model) { m.Delete = form })
	case err != nil:
		return err
	}
	return layout.Redirect(c, paths.Home)
}

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	ctx := c.Request().Context()
	failed := func(card string, err error) string {
		return layout.Reference(ctx, h.deps.Log, "settings", card, err)
	}
	page := model{Who: who}
	data, err := h.deps.Data.DataSettings(ctx, who.Workspace.ID)
	counts, countErr := h.deps.Data.RedactionCounts(ctx, who.Workspace.ID)
	page.Form, page.FormFailed = newForm(data, nil), failed("reading", errors.Join(err, countErr))
	retention, err := h.deps.Data.Retention(ctx, who.Workspace.ID)
	page.Days, page.DaysFailed = newDays(shown(retention), nil), failed("retention", err)
	reader, err := h.deps.Data.Reader(ctx, who.Workspace.ID, who.User.ID)
	page.MayExport, page.ExportFailed = reader.All && who.Role.May(tenants.ExportWorkspace), failed("export", err)
	page.Budgets, err = h.budgets(ctx, who, c.FormValue)
	page.Budgets.Failed = failed("budgets", err)
	page.Prices, err = h.prices(ctx, who, c.FormValue)
	page.Prices.Failed = failed("prices", err)
	page.Limits, err = h.limits(ctx, who, c.FormValue)
	page.Limits.Failed = failed("limits", err)
	change(&page)
	page.Form.count(counts)
	return layout.Page(c, status, layout.Frame{Title: "Settings", Section: layout.Settings, Who: who}, view(page))
}
