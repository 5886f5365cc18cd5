// Package providers is the page of the provider keys that a workspace has stored.
package providers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Store keeps a workspace's provider keys, sealed, and tests them.
type Store interface {
	ProviderKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.ProviderKey, error)

	// CreateProviderKey seals and stores a key with the provider, name, base URL
	// and author of wanted. What a person can mend is a tenants.Invalid.
	CreateProviderKey(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.ProviderKey, secret string) (tenants.ProviderKey, error)

	// DeleteProviderKey returns tenants.ErrNotFound for a key that the workspace
	// does not have.
	DeleteProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error

	// TestProviderKey asks the provider for its models. A key that does not work
	// is an answer; tenants.ErrNotFound is an error.
	TestProviderKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.ProviderKeyTest, error)
}

// Handler answers the requests to the page.
type Handler struct {
	keys Store
	now  func() time.Time
}

// New returns a Handler.
func New(keys Store, now func() time.Time) *Handler {
	return &Handler{keys: keys, now: now}
}

// List shows all provider keys.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) {
		m.Added = m.named(c.QueryParam("added"))
		m.Removed = c.QueryParam("removed") != ""
	})
}

// New shows the form to add a key with.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Form = newForm(typed{}, nil) })
}

// Add stores a key.
func (h *Handler) Add(c echo.Context, who tenants.Principal) error {
	form := typed{Provider: c.FormValue("provider"), Name: c.FormValue("name"), BaseURL: c.FormValue("base_url")}
	added, err := h.keys.CreateProviderKey(c.Request().Context(), who.Workspace.ID, form.wanted(who.User.ID), c.FormValue("key"))
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Providers, "added", added.ID.String()))
	}
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Form = newForm(form, err) })
}

// Test asks the provider whether a key works, now, and shows the answer.
func (h *Handler) Test(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	outcome, err := h.keys.TestProviderKey(c.Request().Context(), who.Workspace.ID, key.ID)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Result = newResult(key.ID, outcome) })
}

// ConfirmRemove asks whether a key is to be removed.
func (h *Handler) ConfirmRemove(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Remove = &key })
}

// Remove removes a key.
func (h *Handler) Remove(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	if err := h.keys.DeleteProviderKey(c.Request().Context(), who.Workspace.ID, key.ID); err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Providers, "removed", key.ID.String()))
}

// find returns the key in the path.
func (h *Handler) find(c echo.Context, who tenants.Principal) (tenants.ProviderKey, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return tenants.ProviderKey{}, tenants.ErrNotFound
	}
	keys, err := h.keys.ProviderKeys(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return tenants.ProviderKey{}, err
	}
	for _, key := range keys {
		if key.ID == id {
			return key, nil
		}
	}
	return tenants.ProviderKey{}, tenants.ErrNotFound
}

// page shows the page after change has had its way with it.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	keys, err := h.keys.ProviderKeys(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	page := model{Keys: keys, Who: who, Now: h.now(), MayChange: who.Role.May(tenants.ManageProviders)}
	change(&page)
	return layout.Page(c, status, layout.Frame{Title: "Providers", Section: layout.Providers, Who: who}, view(page))
}
