// Package columns lets people choose which columns of a list they see. The choice is kept with their membership.
package columns

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// Column is one that can be hidden.
type Column struct{ Name, Label string }

// List is a list whose columns are chosen.
type List struct {
	Store tenants.Views
	Of    tenants.ViewList
	Page  string // the list's own address
	Path  string // where the choice is sent
	All   []Column
	Log   *slog.Logger
}

// Model is what a list shows of the choice.
type Model struct {
	Path   string
	Back   string // the list as it is shown
	All    []Column
	Hidden []string
}

// Shows reports whether a column is shown.
func (m Model) Shows(name string) bool { return !slices.Contains(m.Hidden, name) }

// Model returns a person's choice for the list at an address. Where it cannot be read, all columns are shown.
func (l List) Model(ctx context.Context, who tenants.Principal, back string) Model {
	m := Model{Path: l.Path, Back: back, All: l.All}
	var err error
	if m.Hidden, err = l.Store.HiddenColumns(ctx, who.Workspace.ID, who.User.ID, l.Of); err != nil {
		l.Log.WarnContext(ctx, "columns could not be read; all are shown", "list", l.Of, "error", err)
		m.Hidden = nil
	}
	return m
}

// Save keeps the choice of the form that was sent, in which what is shown is named, and leads back to the list.
func (l List) Save(c echo.Context, who tenants.Principal) error {
	form, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	var hidden []string
	for _, column := range l.All {
		if !slices.Contains(form["show"], column.Name) {
			hidden = append(hidden, column.Name)
		}
	}
	if err := l.Store.HideColumns(c.Request().Context(), who.Workspace.ID, who.User.ID, l.Of, hidden); err != nil {
		return err
	}
	return layout.Redirect(c, l.back(form))
}

// back returns the address that a form leads back to: the list's own, with its query.
func (l List) back(form url.Values) string {
	address, err := url.Parse(form.Get("back"))
	if err != nil || address.RawQuery == "" {
		return l.Page
	}
	return l.Page + "?" + address.RawQuery
}
