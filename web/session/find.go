package session

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

const (
	findTime  = 2 * time.Second
	findRunes = 2 // fewer match everything
)

// findModel is the result of a search in a session.
type findModel struct {
	Asked string
	Path  string // the search's address
	Lane  string // the open lane
	Hits  []foundHit
	Full  bool // there may be more hits than these
	Slow  bool // the search did not end in time
}

// foundHit is a matching message.
type foundHit struct {
	Index, Snippet, Path string
	Words                string // the query's words in the message, for the browser to mark
	IsHere               bool   // in the open lane
}

// Find answers with a session's matching messages, in their order.
func (h *Handler) Find(c echo.Context, who tenants.Principal) error {
	of, err := h.subject(c, who, c.QueryParam("lane"))
	if err != nil {
		return err
	}
	if !layout.IsPartial(c) {
		return h.page(c, who, http.StatusOK, of, nil)
	}
	found, err := h.find(c.Request().Context(), who.Workspace.ID, of, c.QueryParam("q"))
	if err != nil {
		return err
	}
	return layout.Fragment(c, http.StatusOK, foundView(found))
}

// find searches a session's archive if the person may read it.
func (h *Handler) find(ctx context.Context, workspace tenants.WorkspaceID, of subject, asked string) (findModel, error) {
	asked = strings.TrimSpace(asked)
	found := findModel{Asked: asked, Path: paths.FindInSession(of.detail.ID), Lane: of.lane.ID.String()}
	if !of.mayRead || h.deps.Searcher == nil || len([]rune(asked)) < findRunes {
		return found, nil
	}
	within, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	hits, err := h.deps.Searcher.Search(within, workspace, archive.Query{Text: asked, Session: of.detail.ID, Limit: archive.MaxHits})
	if errors.Is(within.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		found.Slow = true
		return found, nil
	}
	if err != nil {
		return findModel{}, err
	}
	found.Full = len(hits) == archive.MaxHits
	found.Hits = inOrder(of, hits, asked)
	return found, nil
}

// inOrder returns a search's hits in reading order, the open lane first, each message once. Hits without any
// of the words are left out.
func inOrder(of subject, hits []archive.Hit, asked string) []foundHit {
	type place struct {
		lane    uuid.UUID
		message int
	}
	known := map[place]bool{}
	hits = slices.DeleteFunc(slices.Clone(hits), func(hit archive.Hit) bool {
		at := place{hit.Lane, hit.From}
		isOld := known[at]
		known[at] = true
		return isOld || len(hit.Matched) == 0
	})
	slices.SortStableFunc(hits, func(a, b archive.Hit) int {
		return cmp.Or(cmp.Compare(otherLane(of, a), otherLane(of, b)), cmp.Compare(a.From, b.From))
	})
	found := make([]foundHit, len(hits))
	for i := range hits {
		lane := hits[i].Lane
		isHere := otherLane(of, hits[i]) == ""
		if isHere {
			lane = of.lane.ID
		}
		found[i] = foundHit{
			Index: strconv.Itoa(hits[i].From), Snippet: render.Visible(hits[i].Snippet), IsHere: isHere,
			Words: strings.Join(hits[i].Matched, "\n"), Path: paths.Hit(of.detail.ID, lane, hits[i].From, asked),
		}
	}
	return found
}

// otherLane returns the lane of a hit; "" if the open lane has the message.
func otherLane(of subject, hit archive.Hit) string {
	if of.holds(hit.Lane, hit.To-1) {
		return ""
	}
	return hit.Lane.String()
}
