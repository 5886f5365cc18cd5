// Package jump finds pages, actions, sessions, keys and messages. The palette of every page asks it; without
// scripts it is a page.
package jump

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

const (
	maxQuery   = 200 // bytes of the query
	perGroup   = 6
	maxHits    = 20
	impatience = 400 * time.Millisecond // unless Deps set it
	patience   = 5 * time.Second        // of people who search the archive explicitly
)

// Deps are the sources that are searched.
type Deps struct {
	Sessions     session.Records
	APIKeys      tenants.APIKeys
	ProviderKeys tenants.ProviderKeys
	Readers      tenants.Data
	Searcher     archive.Searcher // nil disables searching messages
	Log          *slog.Logger
	Now          func() time.Time
	Within       time.Duration // the time limit of a group, which is left out with a note afterwards; 0 means 400 ms
}

// Handler handles the requests.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler {
	if deps.Within == 0 {
		deps.Within = impatience
	}
	return &Handler{deps: deps}
}

// Show shows the matches; the palette gets only the list.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	m := &model{Query: strings.TrimSpace(c.QueryParam("q")), Now: h.deps.Now()}
	if len(m.Query) > maxQuery {
		return echo.NewHTTPError(http.StatusBadRequest)
	}
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	m.MaySearch = h.deps.Searcher != nil && who.Role.May(tenants.ReadArchive) && !reader.None()
	if layout.IsPartial(c) {
		h.fill(ctx, who, reader, m)
		return layout.Fragment(c, http.StatusOK, options(m))
	}
	m.Archive = c.QueryParam("in") == inArchive && m.Query != ""
	switch {
	case !m.Archive:
		h.fill(ctx, who, reader, m)
	case !m.MaySearch:
		return tenants.ErrTextDenied
	default:
		m.Hits, err = h.search(ctx, who.Workspace.ID, reader, m.Query)
		m.Slow = err != nil
		h.note(ctx, "the archive", err)
	}
	return layout.Page(c, http.StatusOK, layout.Frame{Title: "Jump", Section: layout.More, Who: who}, view(m))
}

// fill searches all sources concurrently.
func (h *Handler) fill(ctx context.Context, who tenants.Principal, reader tenants.Reader, m *model) {
	ctx, cancel := context.WithTimeout(ctx, h.deps.Within)
	defer cancel()
	var sessions, keys, providers group
	var looking errgroup.Group
	look := func(into *group, permission tenants.Permission, find func(context.Context) (group, error)) {
		if !who.Role.May(permission) {
			return
		}
		looking.Go(func() error {
			found, err := find(ctx)
			found.Slow = err != nil
			h.note(ctx, found.Title, err)
			*into = found
			return nil
		})
	}
	look(&sessions, tenants.ReadSessions, func(ctx context.Context) (group, error) {
		return h.sessions(ctx, who.Workspace.ID, reader, m.Query, m.Now)
	})
	isVisit := who.Role == tenants.Visitor // pages of keys and settings are closed
	if m.Query != "" && !isVisit {
		look(&keys, tenants.ReadConfig, func(ctx context.Context) (group, error) { return h.keys(ctx, who, m.Query) })
		look(&providers, tenants.ReadConfig, func(ctx context.Context) (group, error) { return h.providers(ctx, who.Workspace.ID, m.Query) })
	}
	_ = looking.Wait() // a failed group shows its own error
	pages, actions := pagesOf(who, m.Query), group{}
	if !isVisit {
		actions = actionsOf(who, m.Query)
	}
	for _, found := range []group{pages, actions, sessions, keys, providers} {
		if len(found.Items) > 0 || found.Slow {
			m.Groups = append(m.Groups, found)
		}
	}
}

// sessions finds sessions as their list does: by title, id, client or model. Without a query it returns the
// newest.
func (h *Handler) sessions(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, query string, now time.Time) (group, error) {
	found := sessionGroup(query)
	filter := session.Filter{Query: query, Masked: !reader.All, Shown: reader.Keys, Limit: perGroup}
	if id, err := uuid.Parse(query); err == nil {
		filter.Query = id.String()
	}
	page, err := h.deps.Sessions.Sessions(ctx, workspace, filter)
	for i := range page.Sessions {
		found.Items = append(found.Items, sessionItem(&page.Sessions[i], now))
	}
	return found, err
}

func (h *Handler) keys(ctx context.Context, who tenants.Principal, query string) (group, error) {
	all, err := h.deps.APIKeys.APIKeys(ctx, who.Workspace.ID)
	found := group{Title: "API keys"}
	for i := range all {
		if key := &all[i]; len(found.Items) < perGroup && matches(query, key.Name, key.Prefix, key.Suffix) {
			found.Items = append(found.Items, keyItem(key, who.MayChangeKey(*key)))
		}
	}
	return found, err
}

func (h *Handler) providers(ctx context.Context, workspace tenants.WorkspaceID, query string) (group, error) {
	all, err := h.deps.ProviderKeys.ProviderKeys(ctx, workspace)
	found := group{Title: "Providers"}
	for i := range all {
		if key := &all[i]; len(found.Items) < perGroup && matches(query, key.Name, string(key.Provider), key.BaseURL) {
			found.Items = append(found.Items, providerItem(key))
		}
	}
	return found, err
}

// search returns the matches that the reader may read, best first.
func (h *Handler) search(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, query string) ([]archive.Hit, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return archive.SearchFor(ctx, h.deps.Searcher, workspace, reader, archive.Query{Text: query, Limit: maxHits})
}

// note logs a source that could not be searched.
func (h *Handler) note(ctx context.Context, what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		h.deps.Log.WarnContext(context.WithoutCancel(ctx), "jump", "in", what, "error", err)
	}
}
