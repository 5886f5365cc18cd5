// Package providers is the page of a workspace's provider keys.
package providers

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// useSpan is the span of the keys' usage figures.
const useSpan = 30 * 24 * time.Hour

// Handler handles the page's requests.
type Handler struct {
	keys tenants.ProviderKeys
	now  func() time.Time
}

// New returns a Handler.
func New(keys tenants.ProviderKeys, now func() time.Time) *Handler {
	return &Handler{keys: keys, now: now}
}

// List shows all provider keys.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) {
		for _, done := range []struct{ query, text string }{
			{"added", "is stored. Test it now, or send a request."}, {"saved", "is saved."}, {"replaced", "has a new secret. Test it now."},
		} {
			if name := m.named(c.QueryParam(done.query)); name != "" {
				m.Done, m.Added = name+" "+done.text, done.query == "added"
			}
		}
		if c.QueryParam("removed") != "" {
			m.Done = "The provider key is removed."
		}
	})
}

// New shows the form to add a key, filled in from a preset if the address names one.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Add = newAddForm(m.Presets, fromPreset(c.QueryParam("preset")), nil) })
}

// Add stores a key.
func (h *Handler) Add(c echo.Context, who tenants.Principal) error {
	form := readForm(c)
	wanted, err := form.wanted(who.User.ID)
	if err == nil {
		var added tenants.ProviderKey
		added, err = h.keys.CreateProviderKey(c.Request().Context(), who.Workspace.ID, wanted, c.FormValue("key"))
		if err == nil {
			return layout.Redirect(c, paths.With(paths.Providers, "added", added.ID.String()))
		}
	}
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Add = newAddForm(m.Presets, form, err) })
}

// Edit shows the form to change a key's use.
func (h *Handler) Edit(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Edit = newEditForm(key, typedOf(key), nil) })
}

// Save changes how a key is used.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	form := readForm(c)
	change, err := form.change()
	if err == nil {
		if _, err = h.keys.EditProviderKey(c.Request().Context(), who.Workspace.ID, key.ID, change); err == nil {
			return layout.Redirect(c, paths.With(paths.Providers, "saved", key.ID.String()))
		}
	}
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Edit = newEditForm(key, form, err) })
}

// AskReplace shows the form to replace a key's secret.
func (h *Handler) AskReplace(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Replace = newReplaceForm(key, key.BaseURL, nil) })
}

// Replace replaces a key's secret.
func (h *Handler) Replace(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	baseURL := c.FormValue("base_url")
	_, err = h.keys.ReplaceProviderKey(c.Request().Context(), who.Workspace.ID, key.ID, c.FormValue("key"), &baseURL)
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Providers, "replaced", key.ID.String()))
	}
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Replace = newReplaceForm(key, baseURL, err) })
}

// Test asks the provider whether a key works and shows the answer.
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

// ConfirmRemove asks whether to remove a key.
func (h *Handler) ConfirmRemove(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Remove = newRemoveForm(key, "", nil) })
}

// Remove removes a key.
func (h *Handler) Remove(c echo.Context, who tenants.Principal) error {
	key, err := h.find(c, who)
	if err != nil {
		return err
	}
	if typed := c.FormValue("name"); typed != key.Name {
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) {
			m.Remove = newRemoveForm(key, typed, tenants.Invalid{Field: "name", Message: "is not " + key.Name})
		})
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

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	page, err := h.model(c.Request().Context(), who)
	if err != nil {
		return err
	}
	change(&page)
	return layout.Page(c, status, layout.Frame{Title: "Providers", Section: layout.Providers, Who: who}, view(page))
}

// model reads the keys and the outcome of their requests.
func (h *Handler) model(ctx context.Context, who tenants.Principal) (model, error) {
	keys, err := h.keys.ProviderKeys(ctx, who.Workspace.ID)
	if err != nil {
		return model{}, err
	}
	uses, err := h.keys.ProviderKeyUses(ctx, who.Workspace.ID, h.now().Add(-useSpan))
	if err != nil {
		return model{}, err
	}
	return model{Keys: keys, Uses: uses, Presets: h.keys.Presets(), Who: who, Now: h.now(), MayChange: who.Role.May(tenants.ManageProviders)}, nil
}

// CSV answers with the list of provider keys as a file. Of secrets it holds only the part that the page
// shows.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	m, err := h.model(c.Request().Context(), who)
	if err != nil {
		return err
	}
	rows := [][]string{{
		"id", "name", "provider", "key", "base_url", "models", "default", "off", "added_at", "tested_at", "test_passed", "test_problem",
		"refused_since", "requests_refused", "last_error_at", "last_error", "requests_30d", "cost_30d_micro_usd",
	}}
	for _, key := range m.Keys {
		rows = append(rows, record(key, m.Uses[key.ID]))
	}
	return layout.CSV(c, "palimpsest-providers.csv").WriteAll(rows)
}

func record(key tenants.ProviderKey, use tenants.ProviderKeyUse) []string {
	passed := ""
	if !key.Check.At.IsZero() {
		passed = strconv.FormatBool(key.Check.OK)
	}
	return []string{
		key.ID.String(), tenants.CSVCell(key.Name), title(key), "…" + key.Last4, tenants.CSVCell(key.BaseURL), tenants.CSVCell(strings.Join(key.Models, ", ")),
		strconv.FormatBool(key.Default), strconv.FormatBool(key.Disabled), tenants.CSVTime(key.CreatedAt),
		tenants.CSVTime(key.Check.At), passed, tenants.CSVCell(key.Check.Problem),
		tenants.CSVTime(use.Since), strconv.FormatInt(use.Rejected, 10), tenants.CSVTime(use.LastErrorAt), tenants.CSVCell(lastError(use)),
		strconv.FormatInt(use.Exchanges, 10), strconv.FormatInt(use.CostMicroUSD, 10),
	}
}
