// Package keys is the page of a workspace's API keys.
package keys

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/clients"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Config configures the page.
type Config struct {
	PublicURL string // the proxy's address for clients, without a trailing slash
	Log       *slog.Logger
	Now       func() time.Time
}

// Handler handles the page's requests.
type Handler struct {
	config    Config
	keys      tenants.APIKeys
	usage     tenants.UsageReader
	exchanges tenants.Exchanges
}

// New returns a Handler.
func New(config Config, keys tenants.APIKeys, usage tenants.UsageReader, exchanges tenants.Exchanges) *Handler {
	return &Handler{config: config, keys: keys, usage: usage, exchanges: exchanges}
}

// List shows all keys and how to set up clients.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(*model) {})
}

// New shows the form to create a key.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) { m.Form = newForm(nil, nil) })
}

// Create creates a key and shows its secret, once. The response is not cached and no address contains the
// secret.
func (h *Handler) Create(c echo.Context, who tenants.Principal) error {
	typed, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	created, secret, err := h.create(c.Request().Context(), who, typed)
	if err == nil {
		return h.page(c, who, http.StatusCreated, func(m *model) {
			m.Created = h.made(created.Name, secret, "")
			m.Created.Awaited = &useModel{ID: created.ID, Name: created.Name, Works: true}
		})
	}
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		return err
	}
	return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Form = newForm(typed, err) })
}

func (h *Handler) create(ctx context.Context, who tenants.Principal, typed url.Values) (tenants.APIKey, string, error) {
	wanted, err := readKey(typed, tenants.APIKey{CreatedBy: who.User.ID, Scopes: []tenants.Scope{tenants.ScopeProxy}}, h.config.Now())
	if err != nil {
		return tenants.APIKey{}, "", err
	}
	if chosen := typed["scopes"]; len(chosen) > 0 {
		wanted.Scopes = nil
		for _, scope := range chosen {
			wanted.Scopes = append(wanted.Scopes, tenants.Scope(scope))
		}
	}
	created, secret, err := h.keys.CreateAPIKey(ctx, who.Workspace.ID, wanted)
	if errors.Is(err, tenants.ErrDenied) {
		err = tenants.Invalid{Field: "scopes", Message: "may not do more than you: leave out manage, or ask an admin of the workspace"}
	}
	return created, secret, err
}

// Edit shows the form to change a key.
func (h *Handler) Edit(c echo.Context, who tenants.Principal) error {
	key, err := h.revocable(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Form = editForm(key, layout.Zone(c.Request()), nil, nil) })
}

// Change changes a key's name, expiry, pipeline and limits.
func (h *Handler) Change(c echo.Context, who tenants.Principal) error {
	key, err := h.revocable(c, who)
	if err != nil {
		return err
	}
	typed, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	wanted, err := readKey(typed, key, h.config.Now())
	if err == nil {
		err = h.keys.ChangeAPIKey(c.Request().Context(), who.Workspace.ID, wanted)
	}
	if _, is := errors.AsType[tenants.Invalid](err); is {
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Form = editForm(key, layout.Zone(c.Request()), typed, err) })
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Keys, "saved", key.ID.String()))
}

// ConfirmRotate asks how to rotate a key.
func (h *Handler) ConfirmRotate(c echo.Context, who tenants.Principal) error {
	key, err := h.revocable(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Rotate = newRotate(key, "", nil) })
}

// Rotate replaces a key's secret and shows the new one, once.
func (h *Handler) Rotate(c echo.Context, who tenants.Principal) error {
	key, err := h.revocable(c, who)
	if err != nil {
		return err
	}
	chosen := c.FormValue("grace")
	overlap, err := grace(chosen)
	var rotated tenants.Rotation
	var secret string
	if err == nil {
		rotated, secret, err = h.keys.RotateAPIKey(c.Request().Context(), who.Workspace.ID, key.ID, overlap)
	}
	if _, is := errors.AsType[tenants.Invalid](err); is {
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Rotate = newRotate(key, chosen, err) })
	}
	if err != nil {
		return err
	}
	old := "The old secret is refused from now on."
	if overlap > 0 {
		old = "The old secret works until " + components.MomentIn(rotated.OldUntil, layout.Zone(c.Request())) + "."
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Created = h.made(key.Name, secret, old) })
}

// ConfirmRevoke asks whether to revoke a key.
func (h *Handler) ConfirmRevoke(c echo.Context, who tenants.Principal) error {
	key, err := h.revocable(c, who)
	if err != nil {
		return err
	}
	return h.page(c, who, http.StatusOK, func(m *model) { m.Revoke = newRevoke(key, "", false) })
}

// Revoke revokes a key after its name was typed.
func (h *Handler) Revoke(c echo.Context, who tenants.Principal) error {
	key, err := h.revocable(c, who)
	if err != nil {
		return err
	}
	if typed := strings.TrimSpace(c.FormValue("confirm")); typed != key.Name {
		return h.page(c, who, http.StatusUnprocessableEntity, func(m *model) { m.Revoke = newRevoke(key, typed, true) })
	}
	if err := h.keys.RevokeAPIKey(c.Request().Context(), who.Workspace.ID, key.ID); err != nil {
		return err
	}
	return layout.Redirect(c, paths.With(paths.Keys, "revoked", key.ID.String()))
}

// made is a newly created or rotated key; old describes the fate of its previous secret.
func (h *Handler) made(name, secret, old string) *createdModel {
	return &createdModel{Name: name, Secret: secret, Old: old, Clients: clients.Filled(h.config.PublicURL, secret)}
}

// revocable returns the path's key if the person may change and revoke it.
func (h *Handler) revocable(c echo.Context, who tenants.Principal) (tenants.APIKey, error) {
	key, err := h.named(c, who)
	if err == nil && !who.MayChangeKey(key) {
		err = tenants.ErrDenied
	}
	return key, err
}

// named returns the path's API key. The error is tenants.ErrNotFound if the workspace has no such key.
func (h *Handler) named(c echo.Context, who tenants.Principal) (tenants.APIKey, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return tenants.APIKey{}, tenants.ErrNotFound
	}
	keys, err := h.keys.APIKeys(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return tenants.APIKey{}, err
	}
	at := slices.IndexFunc(keys, func(key tenants.APIKey) bool { return key.ID == id })
	if at < 0 {
		return tenants.APIKey{}, tenants.ErrNotFound
	}
	return keys[at], nil
}

// page shows the page after applying change.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model)) error {
	page, err := h.model(c.Request().Context(), who)
	if err != nil {
		return err
	}
	page.Revoked = page.revoked(c.QueryParam("revoked"))
	page.Saved = page.named(c.QueryParam("saved"))
	change(&page)
	return layout.Page(c, status, layout.Frame{Title: "API keys", Section: layout.Keys, Who: who}, view(page))
}

// model reads the keys and their usage.
func (h *Handler) model(ctx context.Context, who tenants.Principal) (model, error) {
	now := h.config.Now()
	keys, err := h.keys.APIKeys(ctx, who.Workspace.ID)
	if err != nil {
		return model{}, err
	}
	used, err := h.usage.Usage(ctx, who.Workspace.ID, tenants.ByKey, tenants.UsageFilter{From: now.Add(-usageSpan), To: now})
	failed := layout.Reference(ctx, h.config.Log, "keys", "usage", err)
	return newModel(who, keys, used, failed, h.config.PublicURL, now), nil
}

// CSV answers with the table of keys as a file. If requests could not be counted, their cells are empty.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	m, err := h.model(c.Request().Context(), who)
	if err != nil {
		return err
	}
	rows := [][]string{{"id", "name", "key", "scopes", "pipeline", "limits", "creator", "created_at", "requests_7d", "last_used_at", "expires_at", "status", "cost_7d_micro_usd"}}
	for i := range m.Rows {
		rows = append(rows, m.record(&m.Rows[i]))
	}
	return layout.CSV(c, "palimpsest-keys.csv").WriteAll(rows)
}

func (m *model) record(row *row) []string {
	key := &row.Key
	pipeline, requests := "workspace", strconv.FormatInt(row.Requests, 10)
	if key.Pipeline != "" {
		pipeline = "own"
	}
	cost := ""
	if row.Cost != nil {
		cost = strconv.FormatInt(*row.Cost, 10)
	}
	if m.UsageFailed != "" {
		requests, cost = "", ""
	}
	return []string{
		key.ID.String(), tenants.CSVCell(key.Name), key.Prefix + "…" + key.Suffix, tenants.JoinScopes(key.Scopes, " "), pipeline, tenants.CSVCell(row.Held), tenants.CSVCell(key.Creator),
		tenants.CSVTime(key.CreatedAt), requests, timeCell(key.LastUsedAt), timeCell(key.ExpiresAt), row.State, cost,
	}
}

func timeCell(at *time.Time) string {
	if at == nil {
		return ""
	}
	return tenants.CSVTime(*at)
}
