package requests

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// Views asks for a name of what the list is narrowed to, and shows the person's views.
func (h *Handler) Views(c echo.Context, who tenants.Principal) error {
	return h.askView(c, who, http.StatusOK, "", nil)
}

// SaveView saves what the list is narrowed to.
func (h *Handler) SaveView(c echo.Context, who tenants.Principal) error {
	return h.views.Save(c, who, h.askView)
}

// DeleteView deletes a view of the person.
func (h *Handler) DeleteView(c echo.Context, who tenants.Principal) error {
	return h.views.Delete(c, who)
}

// askView shows the form above the list, with what was typed and why it was refused.
func (h *Handler) askView(c echo.Context, who tenants.Principal, status int, typed string, refused error) error {
	shown, err := h.model(c, who)
	if err != nil {
		return err
	}
	h.views.Ask(c, &shown.Views, typed, refused)
	shown.Opened = nil
	return layout.Page(c, status, frame(who), view(shown))
}

// filters returns what can be saved of an address, see views.Filters. Days are checked
// in no zone in particular: they are days in each.
func filters(address url.Values, _ *time.Location) (url.Values, error) {
	if _, err := tenants.ParseExchangeFilter(address); err != nil {
		return nil, err
	}
	m := newModel(address, "", time.UTC, time.Time{})
	for _, field := range []string{m.Fields.From.Error, m.Fields.To.Error} {
		if field != "" {
			return nil, tenants.Invalid{Field: "range", Message: "must have days such as 2026-01-31"}
		}
	}
	if !slices.ContainsFunc(spans(), func(span span) bool { return span.Name == m.Query.Get("range") }) {
		return nil, tenants.Invalid{Field: "range", Message: "must be one of those that the list offers"}
	}
	for _, name := range []string{"cursor", "sort", "dir", "open"} {
		m.Query.Del(name)
	}
	return m.Query, nil
}
