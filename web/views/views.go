// Package views lets people save what they narrow a list to under names of their own,
// and get back to it.
package views

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

// Filters returns the filters that an address asks for, without what is empty and
// without pages; or tenants.Invalid if the list cannot be narrowed like this. Days are those
// of a zone.
type Filters func(address url.Values, zone *time.Location) (url.Values, error)

// List is a list whose filters are saved.
type List struct {
	Store   tenants.Views
	Of      tenants.ViewList
	Path    string // of the list; its views are below it
	Filters Filters
	Log     *slog.Logger
}

// Model is what a list shows of someone's views.
type Model struct {
	Links  []Link
	Failed string // reference of a failure; empty if none
	Done   string // what was done with a view just now: "saved", "replaced", "deleted"; empty if none

	Here string // the list as it is shown
	Form *Form  // nil if nothing is asked
}

// Link is a view of the list.
type Link struct {
	Name    string
	Path    string   // the list narrowed to it
	Words   []string // the filters
	Current bool     // the list is narrowed to it
	Wrong   string   // why the list cannot be narrowed to it any more; empty: it can

	Delete string // where it is deleted
}

// Form asks for the name of a view, and shows those there are.
type Form struct {
	Action  string // with the filters that are saved
	Words   []string
	Field   components.FieldModel
	Refused string // why these filters cannot be saved; empty: they can
}

// Model reads someone's views of a list that is shown as a request asks. Views that
// cannot be read leave the list alone.
func (l List) Model(c echo.Context, who tenants.Principal) Model {
	ctx, address, zone := c.Request().Context(), c.QueryParams(), layout.Zone(c.Request())
	present, _ := l.Filters(address, zone) // what is wrong with them is said by who shows the list
	model := Model{Here: at(l.Path, present)}
	if done := address.Get("view"); slices.Contains([]string{"saved", "replaced", "deleted"}, done) {
		model.Done = done
	}
	saved, err := l.Store.Views(ctx, who.Workspace.ID, who.User.ID, l.Of)
	if err != nil {
		model.Failed, _, _ = strings.Cut(uuid.NewString(), "-")
		l.Log.ErrorContext(ctx, "views", "list", l.Of, "reference", model.Failed, "error", err)
		return model
	}
	for _, view := range saved {
		link := Link{
			Name: view.Name, Path: l.Path + "?" + view.Query, Current: view.Query == present.Encode(),
			Delete: at(l.Path+"/views/"+view.ID.String()+"/delete", present),
		}
		if asked, err := url.ParseQuery(view.Query); err != nil {
			link.Wrong = "They cannot be read."
		} else if known, err := l.Filters(asked, zone); err != nil {
			link.Wrong = why(err)
		} else if link.Words = words(asked); known.Encode() != view.Query {
			link.Wrong = "The list has not all of them any more."
		}
		model.Links = append(model.Links, link)
	}
	return model
}

// Ask has the model ask for a name of the filters that a request asks for. typed and
// err are what was typed before, and why it was refused; nil if nothing was.
func (l List) Ask(c echo.Context, model *Model, typed string, err error) {
	present, wrong := l.filters(c)
	form := &Form{
		Action: at(l.Path+"/views", present), Words: words(present),
		Field: components.FieldModel{Label: "Name", Name: "name", Value: typed, Hint: fmt.Sprintf("Up to %d characters. A view of yours that has this name gets these filters.", tenants.MaxViewName)},
	}
	switch {
	case wrong != nil:
		form.Refused = why(wrong)
	case len(present) == 0:
		form.Refused = "There is nothing to save: narrow the list first."
	}
	invalid, is := err.(tenants.Invalid) //nolint:errorlint // callers have unwrapped it
	if is && invalid.Field == "name" {
		form.Field.Error = components.FieldError("Name", invalid.Message)
	} else if is && form.Refused == "" {
		form.Refused = why(invalid)
	}
	model.Form = form
}

// Save saves the filters that a request asks for, under the name of its form, and leads to the
// list that shows them. If they cannot be saved, it has ask show the form again.
func (l List) Save(c echo.Context, who tenants.Principal, ask func(c echo.Context, who tenants.Principal, status int, typed string, refused error) error) error {
	form, err := c.FormParams()
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	path, err := l.save(c, who, form)
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		return ask(c, who, http.StatusUnprocessableEntity, form.Get("name"), invalid)
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, path)
}

// save returns where the list shows what it saved.
func (l List) save(c echo.Context, who tenants.Principal, form url.Values) (string, error) {
	present, err := l.filters(c)
	if err != nil {
		return "", err
	}
	view := tenants.View{List: l.Of, Name: strings.TrimSpace(form.Get("name")), Query: present.Encode()}
	if _, err := l.Store.SaveView(c.Request().Context(), who.Workspace.ID, who.User.ID, view); err != nil {
		return "", fmt.Errorf("save view: %w", err)
	}
	done := "saved"
	if form.Get("replace") != "" {
		done = "replaced"
	}
	present.Set("view", done)
	return at(l.Path, present), nil
}

// Delete deletes the view in a request's path and leads to the list as the request asks for it.
// It returns tenants.ErrNotFound for what the person does not have.
func (l List) Delete(c echo.Context, who tenants.Principal) error {
	view, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return tenants.ErrNotFound
	}
	if err := l.Store.DeleteView(c.Request().Context(), who.Workspace.ID, who.User.ID, l.Of, view); err != nil {
		return fmt.Errorf("delete view: %w", err)
	}
	present, err := l.filters(c)
	if err != nil {
		present = url.Values{} // the view is gone all the same
	}
	present.Set("view", "deleted")
	return layout.Redirect(c, at(l.Path, present))
}

func (l List) filters(c echo.Context) (url.Values, error) {
	return l.Filters(c.QueryParams(), layout.Zone(c.Request()))
}

// at returns a path with a query.
func at(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// asking returns where a list at a path asks for the name of what it shows.
func (m Model) asking(path string) string {
	_, query, narrowed := strings.Cut(m.Here, "?")
	if !narrowed {
		return path + "/views"
	}
	return path + "/views?" + query
}
