// Package session is the page of one session: each request's content, each turn with its level, and the
// original beside the text sent.
package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"palimpsest/pipeline/session/sessiondb"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Deps are the page's sources.
type Deps struct {
	Sessions  session.Records
	Costs     sessiondb.Browser
	Archive   archive.Reader
	Pipelines tenants.Pipelines
	APIKeys   tenants.APIKeys
	Readers   tenants.Data
	Audit     tenants.AuditLog
	Stars     tenants.Stars
	Comments  tenants.Comments
	Searcher  archive.Searcher // optional: without it, messages are not searched

	Codecs   map[conversation.Format]wire.Codec
	Defaults pipeline.Layer // the pipeline of a workspace without one of its own
	Now      func() time.Time
}

// Handler handles the page's requests.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps} }

// query is the parsed parameters of the page's address.
type query struct {
	Message int  // -1 if absent
	From    int  // the first message on the turn list's page; -1 means the page of Message
	Offset  int  // the first message of a run whose original is shown
	Folded  bool // only compressed turns
	Raw     bool // the bytes instead of the text
	Diff    bool // line by line instead of side by side
	Exact   bool // the text as sent, not rendered
	Whole   bool // all of the text instead of its beginning
	Table   bool // also the figures of the requests
}

// as returns the query for another view of the same turn.
func (q query) as(view string) query {
	q.Raw, q.Diff = view == "raw", view == "diff"
	return q
}

// exact returns the query for the same text as sent, or rendered.
func (q query) exact(is bool) query {
	q.Exact = is
	return q
}

func queryOf(c echo.Context) query {
	number := func(name string) int {
		n, err := strconv.ParseInt(c.QueryParam(name), 10, 32)
		if err != nil || n < 0 {
			return -1
		}
		return int(n)
	}
	return query{
		Message: number("m"), From: number("from"), Offset: number("o"),
		Folded: c.QueryParam("show") == "compressed", Raw: c.QueryParam("view") == "raw",
		Diff: c.QueryParam("view") == "diff", Exact: c.QueryParam("text") == "exact", Whole: c.QueryParam("all") == "1", Table: c.QueryParam("table") == "1",
	}
}

// Parts of the page that htmx swaps, by htmx's names.
const (
	targetPane    = "div#pane"
	targetTable   = "div#requests"
	targetEarlier = "li#turns-before"
	targetLater   = "li#turns-after"
)

// Show shows the page, or only the requested part for htmx.
func (h *Handler) Show(c echo.Context, who tenants.Principal) error {
	of, err := h.subject(c, who, c.QueryParam("lane"))
	if err != nil {
		return err
	}
	if !layout.IsPartial(c) {
		return h.page(c, who, http.StatusOK, of, nil)
	}
	target := c.Request().Header.Get("HX-Target")
	wanted := map[string]part{targetPane: onlyPane, targetEarlier: onlyRows, targetLater: onlyRows}[target]
	read, reader, err := h.read(c, who, of, wanted)
	if err != nil {
		return err
	}
	switch {
	case target == targetTable:
		model, err := h.model(c.Request().Context(), who, of, reader, read)
		if err != nil {
			return err
		}
		return layout.Fragment(c, http.StatusOK, requestRows(model))
	case target == targetEarlier:
		read.Later = ""
		return layout.Fragment(c, http.StatusOK, turnRows(read))
	case target == targetLater:
		read.Earlier = ""
		return layout.Fragment(c, http.StatusOK, turnRows(read))
	case target == targetPane && read.Pane != nil:
		return layout.Fragment(c, http.StatusOK, paneView(*read.Pane))
	default:
		return layout.Fragment(c, http.StatusOK, readView(read))
	}
}

// Count answers with a session's current number of requests, as text.
func (h *Handler) Count(c echo.Context, who tenants.Principal) error {
	of, err := h.subject(c, who, "")
	if err != nil {
		return err
	}
	return c.String(http.StatusOK, strconv.Itoa(of.detail.Sums.Exchanges))
}

// subject is the session and the lane of a request.
type subject struct {
	detail  session.Detail
	lane    session.LaneOverview
	mayRead bool // the session's messages
}

// holds reports whether the open lane contains a message of a lane: its own, or one that it shares with its
// ancestors, across any number of forks.
func (s *subject) holds(lane uuid.UUID, message int) bool {
	for at := s.lane; at.ID != lane; {
		parent := slices.IndexFunc(s.detail.Lanes, func(l session.LaneOverview) bool { return l.ID == at.Parent })
		if parent < 0 || message >= at.ForkAt {
			return false
		}
		at = s.detail.Lanes[parent]
	}
	return true
}

// subject returns the session and the lane of the request; without a lane's id, the main lane.
func (h *Handler) subject(c echo.Context, who tenants.Principal, lane string) (subject, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return subject{}, session.ErrNotFound
	}
	return h.subjectOf(c.Request().Context(), who, id, lane)
}

// subjectOf is subject for a session's id.
func (h *Handler) subjectOf(ctx context.Context, who tenants.Principal, id uuid.UUID, lane string) (subject, error) {
	detail, err := h.deps.Sessions.Session(ctx, who.Workspace.ID, id)
	if err != nil {
		return subject{}, err
	}
	may, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return subject{}, err
	}
	of := subject{detail: detail, mayRead: may.MayRead(detail.APIKey)}
	if !of.mayRead {
		of.detail.Mask()
	}
	of.lane, err = laneOf(detail, lane)
	return of, err
}

// read returns the requested part of the turn list and its reader.
func (h *Handler) read(c echo.Context, who tenants.Principal, of subject, wanted part) (readModel, *reader, error) {
	ctx := c.Request().Context()
	reader, err := h.reader(ctx, who, of.detail, of.lane, of.mayRead)
	if err != nil {
		return readModel{}, nil, err
	}
	read, err := reader.read(ctx, queryOf(c), wanted)
	if err != nil {
		return readModel{}, nil, err
	}
	if read.comments, err = h.comments(ctx, who, of); err != nil {
		return readModel{}, nil, err
	}
	read.countRemarks(read.comments.remarksOf(of))
	if wanted == allOfIt {
		read.Find, err = h.find(ctx, who.Workspace.ID, of, c.QueryParam("q"))
	}
	return read, reader, err
}

// page answers with the whole page after applying change, which may be nil.
func (h *Handler) page(c echo.Context, who tenants.Principal, status int, of subject, change func(*model)) error {
	read, reader, err := h.read(c, who, of, allOfIt)
	if err != nil {
		return err
	}
	model, err := h.model(c.Request().Context(), who, of, reader, read)
	if err != nil {
		return err
	}
	model.Done, model.WithTable = c.QueryParam("done"), queryOf(c).Table
	model.Comments.opened(c, of.lane)
	if change != nil {
		change(&model)
	}
	frame := layout.Frame{Title: model.Title, Section: layout.Sessions, Who: who, Breadcrumbs: []layout.Breadcrumb{
		{Title: "Sessions", Path: paths.Sessions}, {Title: of.detail.ID.String()[:8]},
	}}
	return layout.Page(c, status, frame, view(model))
}

// laneOf returns the lane with the requested id, by default the first.
func laneOf(detail session.Detail, asked string) (session.LaneOverview, error) {
	for _, lane := range detail.Lanes {
		if asked == "" || lane.ID.String() == asked {
			return lane, nil
		}
	}
	return session.LaneOverview{}, session.ErrNotFound
}

// reader returns the reader of a lane's turns.
func (h *Handler) reader(ctx context.Context, who tenants.Principal, detail session.Detail, lane session.LaneOverview, mayRead bool) (*reader, error) {
	codec, known := h.deps.Codecs[detail.Format]
	if !known {
		return nil, fmt.Errorf("session %s has the unknown format %q", detail.ID, detail.Format)
	}
	epochs, err := h.deps.Sessions.Epochs(ctx, who.Workspace.ID, lane.ID)
	if err != nil {
		return nil, err
	}
	projection, err := h.deps.Sessions.Projection(ctx, who.Workspace.ID, lane.ID)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, err
	}
	inserts, err := h.deps.Sessions.Inserts(ctx, who.Workspace.ID, lane.ID)
	if err != nil {
		return nil, err
	}
	pins, err := h.deps.Sessions.Pins(ctx, who.Workspace.ID, lane.ID)
	if err != nil {
		return nil, err
	}
	return &reader{
		inserts: inserts, pins: pins, calls: map[string]call{},
		archive: h.deps.Archive, store: h.deps.Sessions, codec: codec, workspace: who.Workspace.ID, session: detail.ID, lane: lane,
		projection: projection, epochs: epochs, mayRead: mayRead, requests: h.deps.Costs, isMain: len(detail.Lanes) > 0 && detail.Lanes[0].ID == lane.ID && !detail.Single, role: who.Role, now: h.deps.Now(),
	}, nil
}

// key returns the API key of a session; the zero APIKey if it was deleted.
func (h *Handler) key(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.APIKey, error) {
	keys, err := h.deps.APIKeys.APIKeys(ctx, workspace)
	if err != nil {
		return tenants.APIKey{}, err
	}
	for i := range keys {
		if keys[i].ID == id {
			return keys[i], nil
		}
	}
	return tenants.APIKey{}, nil
}
