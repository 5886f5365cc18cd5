// Package alerts is the page of a workspace's alerts: their rules, channels and quiet hours, and the outcome
// of each alert.
package alerts

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Handler handles the page's requests.
type Handler struct {
	service tenants.Alerts
	now     func() time.Time
}

// New returns a Handler.
func New(service tenants.Alerts, now func() time.Time) *Handler {
	return &Handler{service: service, now: now}
}

// Show shows the page.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) error {
		m.Done, m.Refused = doneText(c.QueryParam("done")), c.QueryParam("done") == "refused"
		return nil
	})
}

// Save saves the settings.
func (h *Handler) Save(c echo.Context, who tenants.Principal) error {
	typed := typedSettings{From: c.FormValue("quiet_from"), To: c.FormValue("quiet_to"), Zone: c.FormValue("time_zone"), Percent: c.FormValue("error_percent"), Spend: c.FormValue("spend_percent"), Slow: c.FormValue("slow_seconds"), Held: c.FormValue("held_percent")}
	err := h.service.SaveSettings(c.Request().Context(), who.Workspace.ID, typed.settings())
	return h.done(c, who, "saved", err, func(m *model) error {
		m.settings(typed, err)
		return nil
	})
}

// New shows the form to add a channel.
func (h *Handler) New(c echo.Context, who tenants.Principal) error {
	wanted := tenants.WantedAlertChannel{Kind: tenants.AlertKind(c.QueryParam("kind")), Rules: usualRules()}
	if _, known := kindNames()[wanted.Kind]; !known {
		wanted.Kind = tenants.AlertWebhook
	}
	return h.page(c, who, http.StatusOK, func(m *model) error {
		m.Form = newForm(m, uuid.Nil, wanted, nil)
		return nil
	})
}

// Add adds a channel, and shows the secret that signs its webhooks.
func (h *Handler) Add(c echo.Context, who tenants.Principal) error {
	wanted := readForm(c)
	added, secret, err := h.service.Add(c.Request().Context(), who, wanted)
	if err == nil && secret != "" {
		return h.page(c, who, http.StatusOK, func(m *model) error {
			m.Created, m.Secret = added.Name, secret
			return nil
		})
	}
	return h.done(c, who, "added", err, func(m *model) error {
		m.Form = newForm(m, uuid.Nil, wanted, err)
		return nil
	})
}

// Edit shows the form to change a channel.
func (h *Handler) Edit(c echo.Context, who tenants.Principal) error {
	return h.page(c, who, http.StatusOK, func(m *model) error {
		channel, err := m.channel(idOf(c))
		m.Form = newForm(m, channel.ID, tenants.WantedAlertChannel{
			Kind: channel.Kind, Name: channel.Name, User: channel.User, Rules: channel.Rules, Disabled: channel.Disabled,
		}, nil)
		return err
	})
}

// Change changes a channel.
func (h *Handler) Change(c echo.Context, who tenants.Principal) error {
	wanted := readForm(c)
	err := h.service.Change(c.Request().Context(), who, idOf(c), wanted)
	return h.done(c, who, "changed", err, func(m *model) error {
		channel, notFound := m.channel(idOf(c))
		wanted.Kind = channel.Kind
		m.Form = newForm(m, channel.ID, wanted, err)
		return notFound
	})
}

// Test sends a test to a channel.
func (h *Handler) Test(c echo.Context, who tenants.Principal) error {
	delivery, err := h.service.Test(c.Request().Context(), who, idOf(c))
	if err != nil {
		return err
	}
	done := "tested"
	if delivery.State != tenants.DeliveryDelivered {
		done = "refused"
	}
	return layout.Redirect(c, paths.With(paths.Alerts, "done", done))
}

// Remove removes a channel.
func (h *Handler) Remove(c echo.Context, who tenants.Principal) error {
	return h.done(c, who, "removed", h.service.Remove(c.Request().Context(), who, idOf(c)), nil)
}

// Retry retries a failed delivery.
func (h *Handler) Retry(c echo.Context, who tenants.Principal) error {
	return h.done(c, who, "retried", h.service.Retry(c.Request().Context(), who, idOf(c)), nil)
}

// done redirects to the page, or shows it with a form to which change has added the error.
func (h *Handler) done(c echo.Context, who tenants.Principal, what string, err error, change func(*model) error) error {
	if err == nil {
		return layout.Redirect(c, paths.With(paths.Alerts, "done", what))
	}
	if _, is := errors.AsType[tenants.Invalid](err); is && change != nil {
		return h.page(c, who, http.StatusUnprocessableEntity, change)
	}
	return err
}

func (h *Handler) page(c echo.Context, who tenants.Principal, status int, change func(*model) error) error {
	found, err := h.service.Find(c.Request().Context(), who.Workspace.ID)
	if err != nil {
		return err
	}
	page := newModel(found, who, h.now())
	if err := change(&page); err != nil {
		return err
	}
	return layout.Page(c, status, layout.Frame{Title: "Alerts", Section: layout.Alerts, Who: who}, view(page))
}

// idOf returns the id in the path, or uuid.Nil, which never exists, if it is not valid.
func idOf(c echo.Context) uuid.UUID {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.Nil
	}
	return id
}

// readForm reads the form of a channel.
func readForm(c echo.Context) tenants.WantedAlertChannel {
	wanted := tenants.WantedAlertChannel{
		Kind: tenants.AlertKind(c.FormValue("kind")), Name: c.FormValue("name"), URL: c.FormValue("url"), Disabled: c.FormValue("on") == "",
	}
	if user, err := uuid.Parse(c.FormValue("user")); err == nil {
		wanted.User = user
	}
	if form, err := c.FormParams(); err == nil {
		for _, rule := range form["rules"] {
			wanted.Rules = append(wanted.Rules, tenants.AlertRule(rule))
		}
	}
	return wanted
}

// typedSettings is the input for the settings.
type typedSettings struct{ From, To, Zone, Percent, Spend, Slow, Held string }

// settings returns the input, with invalid values for unreadable parts, so that they are refused. Empty times
// mean no quiet hours.
func (t typedSettings) settings() tenants.AlertSettings {
	settings := tenants.AlertSettings{QuietFrom: tenants.ParseClockTime(t.From), QuietTo: tenants.ParseClockTime(t.To), TimeZone: t.Zone}
	if t.From == "" && t.To == "" {
		settings.QuietFrom, settings.QuietTo = 0, 0
	}
	settings.ErrorPercent, _ = strconv.Atoi(t.Percent)
	settings.SpendPercent, _ = strconv.Atoi(t.Spend)
	settings.SlowSeconds, _ = strconv.Atoi(t.Slow)
	settings.HeldPercent, _ = strconv.Atoi(t.Held)
	return settings
}
