package docs

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// maxQuery limits a search, in bytes.
const maxQuery = 200

// Handler handles requests for the documentation.
type Handler struct{ version string }

// New returns a Handler that shows the program's version.
func New(version string) *Handler { return &Handler{version: version} }

// model is a page, the list of all pages, or search results.
type model struct {
	Groups  []group
	Page    *page // nil for the list of pages and for search results
	Query   string
	Hits    []hit
	Version string
}

// List shows all pages, or search results.
func (h *Handler) List(c echo.Context, who tenants.Principal) error {
	query := strings.TrimSpace(c.QueryParam("q"))
	if len(query) > maxQuery {
		return echo.NewHTTPError(http.StatusBadRequest)
	}
	all := everything()
	return h.show(c, who, "Docs", model{Groups: all.groups, Query: query, Hits: all.search(query)})
}

// Show shows a page.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	all := everything()
	page, is := all.byName[c.Param("page")]
	if !is {
		return tenants.ErrNotFound
	}
	return h.show(c, who, page.Title, model{Groups: all.groups, Page: page})
}

// show answers with a page inside the dashboard for people in a workspace, and without the dashboard for
// others.
func (h *Handler) show(c echo.Context, who tenants.Principal, title string, m model) error {
	m.Version = h.version
	if who.Workspace.ID.IsZero() {
		return layout.Plain(c, http.StatusOK, title, view(m))
	}
	frame := layout.Frame{Title: title, Section: layout.Docs, Who: who}
	if m.Page != nil {
		frame.Breadcrumbs = []layout.Breadcrumb{{Title: "Docs", Path: paths.Docs}, {Title: title}}
	}
	return layout.Page(c, http.StatusOK, frame, view(m))
}
