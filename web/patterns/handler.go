// Package patterns is the page of rules learned in a workspace, where people decide which of them go into
// prompts.
package patterns

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

const (
	pageSize = 50
)

// Handler handles the page's requests.
type Handler struct {
	store *patternsdb.Store
	audit tenants.AuditLog
	now   func() time.Time
}

// New returns a Handler.
func New(store *patternsdb.Store, audit tenants.AuditLog, now func() time.Time) *Handler {
	return &Handler{store: store, audit: audit, now: now}
}

// List shows the rules of one state.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Done = done(c.QueryParam("done")) })
}

// New shows the form to add a rule.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Form = newForm(nil, typed{Kind: string(patterns.Convention)}, nil) })
}

// Add adds a rule from the form, already approved.
func (h *Handler) Add(c echo.Context, who tenants.Principal) error {
	form := readTyped(c)
	wanted, err := form.pattern(who.User.ID)
	if err == nil {
		err = h.together(c, who, func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error) {
			added, err := h.store.Add(ctx, tenant, wanted, h.now().UTC())
			return tenants.Change{Action: tenants.PatternAdded, Target: added.ID.String(), After: added.Facts()}, err
		})
	}
	switch {
	case err == nil:
		return h.back(c, "added")
	case errors.Is(err, patterns.ErrFull):
		err = patterns.Invalid{Field: "text", Message: "cannot be added: the workspace has the maximum number of rules. Delete some first"}
	}
	if _, is := errors.AsType[patterns.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Form = newForm(nil, form, err) })
}

// Approve approves a rule, so that it goes into prompts.
func (h *Handler) Approve(c echo.Context, who tenants.Principal) error {
	return h.decide(c, who, patterns.Approved, "approved")
}

// Disable disables a rule, so that it no longer goes into prompts.
func (h *Handler) Disable(c echo.Context, who tenants.Principal) error {
	return h.decide(c, who, patterns.Disabled, "disabled")
}

func (h *Handler) decide(c echo.Context, who tenants.Principal, status patterns.Status, said string) error {
	found, err := h.found(c, who)
	if err != nil {
		return err
	}
	err = h.change(c, who, &found, patterns.Change{Status: &status})
	if errors.Is(err, patterns.ErrChanged) {
		return h.page(c, who, http.StatusConflict, func(m *model) { m.Conflict = true })
	}
	if err != nil {
		return err
	}
	return h.back(c, said)
}

// Edit shows the form to change a rule.
func (h *Handler) Edit(c echo.Context, who tenants.Principal) error {
	found, err := h.found(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Form = newForm(&found, typedOf(&found), nil) })
}

// Save changes a rule's text and conditions.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	found, err := h.found(c, who)
	if err != nil {
		return err
	}
	form := readTyped(c)
	wanted, err := form.pattern(who.User.ID)
	if err == nil {
		err = h.change(c, who, &found, patterns.Change{Text: &wanted.Text, When: &wanted.When})
	}
	if errors.Is(err, patterns.ErrChanged) {
		return h.page(c, who, http.StatusConflict, func(m *model) {
			m.Conflict, m.Form = true, newForm(&found, form, nil)
		})
	}
	if _, is := errors.AsType[patterns.Invalid](err); is {
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Form = newForm(&found, form, err) })
	}
	if err != nil {
		return err
	}
	return h.back(c, "saved")
}

// ConfirmDelete asks whether to delete a rule.
func (h *Handler) ConfirmDelete(c echo.Context, who tenants.Principal) error {
	found, err := h.found(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Delete = &found })
}

// Delete deletes a rule and the record of where it was learned.
func (h *Handler) Delete(c echo.Context, who tenants.Principal) error {
	found, err := h.found(c, who)
	if err != nil {
		return err
	}
	err = h.together(c, who, func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error) {
		change := tenants.Change{Action: tenants.PatternDeleted, Target: found.ID.String(), Before: found.Facts()}
		return change, h.store.Delete(ctx, tenant, found.ID)
	})
	if err != nil {
		return err
	}
	return h.back(c, "deleted")
}

// change changes a rule if it still has the form's version.
func (h *Handler) change(c echo.Context, who tenants.Principal, found *patterns.Pattern, change patterns.Change) error {
	version, err := strconv.Atoi(c.FormValue("version"))
	if err != nil {
		version = found.Version
	}
	return h.together(c, who, func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error) {
		changed, err := h.store.Change(ctx, tenant, found.ID, version, change, who.User.ID, h.now().UTC())
		return tenants.Change{Action: tenants.PatternChanged, Target: found.ID.String(), Before: found.Facts(), After: changed.Facts()}, err
	})
}

// together makes a change and logs it in one transaction.
func (h *Handler) together(c echo.Context, who tenants.Principal, do func(ctx context.Context, tenant tenants.Tenant) (tenants.Change, error)) error {
	ctx := c.Request().Context()
	return h.audit.Together(ctx, who.Workspace.ID, func(tenant tenants.Tenant) error {
		change, err := do(ctx, tenant)
		if err != nil {
			return err
		}
		return h.audit.Note(ctx, tenant, change)
	})
}

// back redirects to the list with a confirmation.
func (h *Handler) back(c echo.Context, said string) error {
	return layout.Redirect(c, paths.With(paths.Patterns, "done", said))
}

// found returns the rule in the path, reduced to the words that the reader may read, and the reader's access.
func (h *Handler) found(c echo.Context, who tenants.Principal) (patterns.Pattern, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return patterns.Pattern{}, tenants.ErrNotFound
	}
	ctx := c.Request().Context()
	found, err := h.store.Pattern(ctx, who.Workspace.ID, id)
	if errors.Is(err, patterns.ErrNotFound) {
		err = tenants.ErrNotFound
	}
	return found, err
}

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	m := &model{Who: who, MayChange: who.Role.May(tenants.ManagePatterns), Now: h.now()}
	filter := patterns.Filter{Limit: pageSize + 1}
	var err error
	if cursor := c.QueryParam("cursor"); cursor != "" {
		if filter.After, err = uuid.Parse(cursor); err != nil {
			return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
		}
	}
	if m.Rows, err = h.store.List(c.Request().Context(), who.Workspace.ID, filter); err != nil {
		return err
	}
	if len(m.Rows) > pageSize {
		m.Rows = slices.Clip(m.Rows[:pageSize])
		m.Next = m.Rows[pageSize-1].ID.String()
	}
	m.First = filter.After == uuid.Nil
	change(m)
	return layout.Page(c, status, layout.Frame{Title: "Patterns", Section: layout.Patterns, Who: who}, view(m))
}
