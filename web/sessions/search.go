package sessions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

const (
	searchTime  = 2 * time.Second
	searchRunes = 3 // fewer match everything
)

// found is the archive's result for the query.
type found struct {
	Hits []hit
	Slow bool // the search did not end in time
	Away bool // the bucket with the originals does not answer
	Fail bool
}

// hit is a match in the archive.
type hit struct {
	Title, Snippet, Path string
	Files                string
	Matched              string // the query's words
	Named                string // the session and the day in the query
}

// search searches the archive as far as the reader may read. It is only part of the first page, and its
// errors do not affect the list.
func (h *Handler) search(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, asked ask, filter session.Filter) found {
	text := strings.TrimSpace(asked.Query)
	if len([]rune(text)) < searchRunes || asked.Cursor != "" || reader.None() {
		return found{}
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	query := archive.Query{Text: text, Since: filter.From, Until: filter.To, APIKey: filter.APIKey, Limit: archive.DefaultHits}
	hits, err := archive.SearchFor(ctx, h.deps.Searcher, workspace, reader, query)
	if err == nil {
		var shown []hit
		if shown, err = h.titled(ctx, workspace, filter, hits, text); err == nil {
			return found{Hits: shown}
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return found{Slow: true}
	}
	h.deps.Log.WarnContext(ctx, "search of the archive", "error", err)
	isAway := errors.Is(err, archive.ErrAway)
	return found{Away: isAway, Fail: !isAway}
}

// titled returns the hits whose sessions pass the filter, with the sessions' titles.
func (h *Handler) titled(ctx context.Context, workspace tenants.WorkspaceID, filter session.Filter, hits []archive.Hit, asked string) ([]hit, error) {
	known := map[uuid.UUID]session.Detail{}
	var shown []hit
	for i := range hits {
		of := &hits[i]
		detail, ok := known[of.Session]
		if !ok {
			var err error
			if detail, err = h.deps.Sessions.Session(ctx, workspace, of.Session); errors.Is(err, session.ErrNotFound) {
				continue
			} else if err != nil {
				return nil, err
			}
			known[of.Session] = detail
		}
		if filter.EndUser != nil && !slices.Contains(filter.EndUser, detail.EndUser) || filter.Client != "" && detail.Client != filter.Client || filter.Model != "" && detail.Model != filter.Model {
			continue
		}
		shown = append(shown, hit{
			Title: row{Overview: detail.Overview}.title(), Snippet: render.Visible(of.Snippet),
			Files: render.Visible(strings.Join(of.Paths[:min(len(of.Paths), 3)], ", ")), Path: paths.Hit(of.Session, of.Lane, of.From, asked),
			Matched: render.Visible(strings.Join(of.Matched, ", ")), Named: render.Visible(strings.Join(of.Named, ", ")),
		})
	}
	return shown, nil
}
