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
	findRunes = 2 // fewer find everything
)

// findModel is what the archive of a session holds about what is looked for.
type findModel struct {
	Asked string
	Path  string // that answers it
	Lane  string // that is read
	Hits  []foundHit
	Full  bool // there may be more hits than these
	Slow  bool // the search did not end in time
}

// foundHit is a message that has what is looked for.
type foundHit struct {
	Index, Snippet, Path string
	Words                string // of the message that were asked for, for the browser to mark
	IsHere               bool   // in the lane that is read
}

// Find answers the messages of a session that have what is looked for, in their order.
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

// find looks in the archive of a session. What nobody may read is not searched.
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

// inOrder returns what a search found as a reader meets it: the lane that is read first, each
// message once. What has none of the words is left out.
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
		return cmp.Or(cmp.Compare(elsewhere(of, a), elsewhere(of, b)), cmp.Compare(a.From, b.From))
	})
	found := make([]foundHit, len(hits))
	for i := range hits {
		lane := hits[i].Lane
		isHere := elsewhere(of, hits[i]) == ""
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

// elsewhere returns the lane of a hit; "" if the lane that is read has its messages.
func elsewhere(of subject, hit archive.Hit) string {
	if of.holds(hit.Lane, hit.To-1) {
		return ""
	}
	return hit.Lane.String()
}
