package sessions

import (
	"context"
	"errors"
	"html"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

const (
	searchTime  = 2 * time.Second
	searchRunes = 3 // fewer match everything

	firstHits = 20 // messages that a search shows at first
)

// found is the archive's result for the query.
type found struct {
	Groups []group
	Hits   int
	More   string // the address with more messages; "" if these are all
	Slow   bool   // the search did not end in time
	Away   bool   // the bucket with the originals does not answer
	Fail   bool
}

// group is a session with its matching messages, the best one first.
type group struct {
	row

	Hits   []hit
	Person string // the member behind its API key, or the key's name; "" if unknown
}

// hit is a match in the archive.
type hit struct {
	Snippet string // HTML, with the query's words marked
	Path    string
	Message int
	Files   string
	Matched string // the query's words
	Named   string // the session and the day in the query
}

// search searches the archive as far as the reader may read. It is only part of the first page, and its
// errors do not affect the list.
func (h *Handler) search(ctx context.Context, workspace tenants.WorkspaceID, shown *model, filter session.Filter) found {
	text := strings.TrimSpace(shown.Asked.words.Rest)
	reader := readerOf(shown, filter)
	if len([]rune(text)) < searchRunes || shown.Asked.Cursor != "" || reader.None() {
		return found{}
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	query := archive.Query{Text: text, Since: filter.From, Until: filter.To, APIKey: filter.APIKey, Project: filter.Project, Limit: firstHits}
	if shown.Asked.More {
		query.Limit = archive.MaxHits
	}
	hits, err := archive.SearchFor(ctx, h.deps.Searcher, workspace, reader, query)
	if err == nil {
		var result found
		if result, err = h.grouped(ctx, workspace, shown, filter, hits); err == nil {
			if len(hits) == firstHits && !shown.Asked.More {
				result.More = shown.Asked.with(func(a *ask) { a.More = true }).path()
			}
			return result
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return found{Slow: true}
	}
	h.deps.Log.WarnContext(ctx, "search of the archive", "error", err)
	isAway := errors.Is(err, archive.ErrAway)
	return found{Away: isAway, Fail: !isAway}
}

// readerOf returns the person's read access, only to the listed member's API keys if the list has those of one.
func readerOf(shown *model, filter session.Filter) tenants.Reader {
	reader := shown.Reader
	keys := filter.Keys
	if filter.Member != uuid.Nil {
		keys = []uuid.UUID{}
		for i := range shown.Keys {
			if shown.Keys[i].CreatedBy == filter.Member {
				keys = append(keys, shown.Keys[i].ID)
			}
		}
	}
	if keys == nil {
		return reader
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(key uuid.UUID) bool { return !reader.MayRead(key) })
	reader.All, reader.Own, reader.Keys = false, true, keys
	return reader
}

// grouped returns the hits by session, in the order of the sessions' best ones, without sessions that the
// list's filters exclude.
func (h *Handler) grouped(ctx context.Context, workspace tenants.WorkspaceID, shown *model, filter session.Filter, hits []archive.Hit) (found, error) {
	var ids []uuid.UUID
	for i := range hits {
		if !slices.Contains(ids, hits[i].Session) {
			ids = append(ids, hits[i].Session)
		}
	}
	if len(ids) == 0 {
		return found{}, nil
	}
	filter.IDs, filter.Query, filter.Cursor, filter.Sort, filter.Show, filter.Limit = ids, "", "", session.Sort{}, session.ShowAll, len(ids)
	page, err := h.deps.Sessions.Sessions(ctx, workspace, filter)
	if err != nil {
		return found{}, err
	}
	var result found
	for _, id := range ids {
		at := slices.IndexFunc(page.Sessions, func(o session.Overview) bool { return o.ID == id })
		if at < 0 {
			continue
		}
		of := group{row: row{Overview: page.Sessions[at]}}
		of.Person = shown.person(of.APIKey)
		for i := range hits {
			if hits[i].Session == id {
				of.Hits = append(of.Hits, newHit(&hits[i], shown.Asked.words.Rest))
			}
		}
		result.Hits += len(of.Hits)
		result.Groups = append(result.Groups, of)
	}
	return result, nil
}

func newHit(of *archive.Hit, asked string) hit {
	return hit{
		Snippet: marked(render.Visible(of.Snippet), of.Matched), Message: of.From,
		Files: render.Visible(strings.Join(of.Paths[:min(len(of.Paths), 3)], ", ")), Path: paths.Hit(of.Session, of.Lane, of.From, asked),
		Matched: render.Visible(strings.Join(of.Matched, ", ")), Named: render.Visible(strings.Join(of.Named, ", ")),
	}
}

// marked returns a snippet as HTML, with the query's words marked.
func marked(snippet string, words []string) string {
	quoted := make([]string, 0, len(words))
	for _, word := range words {
		if word != "" {
			quoted = append(quoted, regexp.QuoteMeta(word))
		}
	}
	pattern, err := regexp.Compile("(?i)" + strings.Join(quoted, "|"))
	if len(quoted) == 0 || err != nil {
		return html.EscapeString(snippet)
	}
	var text strings.Builder
	end := 0
	for _, at := range pattern.FindAllStringIndex(snippet, -1) {
		text.WriteString(html.EscapeString(snippet[end:at[0]]) + "<mark>" + html.EscapeString(snippet[at[0]:at[1]]) + "</mark>")
		end = at[1]
	}
	text.WriteString(html.EscapeString(snippet[end:]))
	return text.String()
}

// person returns the member behind an API key, or the key's name.
func (m model) person(key uuid.UUID) string {
	for i := range m.Keys {
		if of := &m.Keys[i]; of.ID == key {
			if of.Creator != "" {
				return of.Creator
			}
			return of.Name
		}
	}
	return ""
}

// fewTitles is how many sessions found by their title stand before those found by their messages.
const fewTitles = 5

// titlesFirst reports whether the sessions found by title are listed first, because they are few.
func (m model) titlesFirst() bool { return len(m.Rows) > 0 && len(m.Rows) <= fewTitles && m.Next == "" }

// matches counts the sessions and messages that a search found.
func (f found) matches() string {
	return components.Plural(int64(len(f.Groups)), "session") + ", " + components.Plural(int64(f.Hits), "message")
}
