package sessions

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// A row shows the states of all of its newest requests, in whichever order they come, and its levels are those
// of the newest that has some.
func TestRowShowsWhatAnyOfItsNewestRequestsWas(t *testing.T) {
	t.Parallel()
	fine := tenants.Exchange{Answer: tenants.ExchangeAnswer{Status: 200}}
	failed, truncated, first, second := fine, fine, fine, fine
	failed.Answer.Status, truncated.Prompt.Compression = 400, "truncated"
	first.Prompt.Levels, second.Prompt.Levels = [4]int{1, 2, 3, 4}, [4]int{5, 6, 7, 8}
	for name, c := range map[string]struct {
		newest            []tenants.Exchange
		truncated, failed bool
		levels            [4]int
	}{
		"none":               {nil, false, false, [4]int{}},
		"first of two":       {[]tenants.Exchange{failed, fine}, false, true, [4]int{}},
		"last of two":        {[]tenants.Exchange{fine, failed}, false, true, [4]int{}},
		"truncated, failed":  {[]tenants.Exchange{truncated, fine, failed, fine}, true, true, [4]int{}},
		"levels of two":      {[]tenants.Exchange{fine, first, second}, false, false, first.Prompt.Levels},
		"the other way":      {[]tenants.Exchange{second, first, fine}, false, false, second.Prompt.Levels},
		"truncated is newer": {[]tenants.Exchange{truncated, second}, true, false, second.Prompt.Levels},
	} {
		r := newRow(session.Overview{}, c.newest)
		var levels [4]int
		if r.Levels != nil {
			levels = *r.Levels
		}
		if r.Truncated != c.truncated || r.Failed != c.failed || levels != c.levels {
			t.Errorf("%s: truncated %t, failed %t, levels %v", name, r.Truncated, r.Failed, levels)
		}
	}
}

// The figures of a row and of its line in the file are those of their columns and units.
func TestFiguresOfSessionStandInTheirColumn(t *testing.T) {
	t.Parallel()
	of := session.Overview{
		ID: uuid.New(), APIKey: uuid.New(), Title: "t", Client: "c", Model: "m", StartedAt: time.Unix(1000, 0), LastAt: time.Unix(5000, 0), Rehydrated: true,
		Sums: session.Sums{Exchanges: 3, Epochs: 2, TokensBefore: 1000, TokensAfter: 250, NetMicroUSD: -1_234_567, CostMicroUSD: 42, Reach: 1, ReachBefore: 200, ReachAfter: 150},
	}
	want := []string{of.ID.String(), "t", "c", "m", of.APIKey.String(), "1970-01-01T00:16:40Z", "1970-01-01T01:23:20Z", "3", "2", "1000", "250", "-1234567", "false", "true", "1", "200", "150", "42", "700", "", ""}
	heading := []string{"id", "title", "client", "model", "api_key", "started_at", "last_at", "requests", "epochs", "tokens_received", "tokens_sent", "net_micro_usd",
		"bridged", "rehydrated", "reach", "reach_tokens_received", "reach_tokens_sent", "cost_micro_usd", "tokens_saved", "end_user", "end_user_name"}
	if got := record(nil); !slices.Equal(got, heading) {
		t.Errorf("the file has the columns %q, want %q", got, heading)
	}
	if got := record(&of); !slices.Equal(got, want) {
		t.Errorf("the file has %q, want %q", got, want)
	}
	exchange := func(before, after int) tenants.Exchange {
		return tenants.Exchange{Prompt: tenants.ExchangePrompt{TokensBefore: before, TokensAfter: after, Window: 200}}
	}
	r := newRow(of, []tenants.Exchange{exchange(180, 50), exchange(90, 30)})
	if got := r.saved(); got != "87.5%" {
		t.Errorf("saved %s", got)
	}
	if r.Fill == nil || r.Fill.Words != "Context window filled by the newest 2 requests, at most 25 percent" {
		t.Errorf("filled %+v", r.Fill)
	}
}

// A page says that titles are held back if any of its sessions has such a title, the first or the last.
func TestPageSaysThatSomeTitleIsHeldBack(t *testing.T) {
	t.Parallel()
	own, other := row{Overview: session.Overview{APIKey: uuid.New()}}, row{Overview: session.Overview{APIKey: uuid.New()}}
	for name, c := range map[string]struct {
		rows []row
		want bool
	}{"none": {nil, false}, "own": {[]row{own, own}, false}, "first": {[]row{other, own}, true}, "last": {[]row{own, other}, true}} {
		m := model{Rows: c.rows, Reader: tenants.Reader{Own: true, Keys: []uuid.UUID{own.APIKey}}}
		if m.held() != c.want {
			t.Errorf("%s: held back %t", name, m.held())
		}
	}
}

// stored are sessions, and an archive with hits in them.
type stored struct {
	searcher
	records

	asked *archive.Query
	hits  []archive.Hit
	all   []session.Overview
	of    map[uuid.UUID]session.Overview
}

type (
	searcher = archive.Searcher
	records  = session.Records
)

func (s stored) Search(_ context.Context, _ tenants.WorkspaceID, query archive.Query) ([]archive.Hit, error) {
	*s.asked = query
	return s.hits, nil
}

// The archive is searched in the range, of the key, the client and the model of the list; a session that
// is gone does not hide the others.
func TestArchiveIsSearchedWithTheFiltersOfTheList(t *testing.T) {
	t.Parallel()
	s := stored{asked: &archive.Query{}, of: map[uuid.UUID]session.Overview{}}
	for _, of := range [][2]string{{"codex", "m1"}, {"codex", "m2"}, {"cursor", "m1"}, {}} {
		id := uuid.New()
		if s.hits = append(s.hits, archive.Hit{Session: id}); of[0] != "" {
			s.of[id] = session.Overview{ID: id, Title: of[0] + " " + of[1], Client: of[0], Model: of[1]}
		}
	}
	slices.Reverse(s.hits) // the one without a session is the first
	h := Handler{deps: Deps{Searcher: s, Sessions: s}}
	from, to, key := time.Unix(100, 0), time.Unix(200, 0), uuid.New()
	for name, c := range map[string]struct {
		client, model string
		want          []string
	}{
		"all": {"", "", []string{"cursor m1", "codex m2", "codex m1"}}, "client": {"codex", "", []string{"codex m2", "codex m1"}},
		"model": {"", "m1", []string{"cursor m1", "codex m1"}}, "both": {"codex", "m1", []string{"codex m1"}}, "neither": {"pi", "m1", nil},
	} {
		filter := session.Filter{Client: c.client, Model: c.model, From: from, To: to, APIKey: key}
		shown := model{Reader: tenants.Reader{All: true}, Asked: ask{words: understood{Rest: " otters "}}}
		found := h.search(t.Context(), tenants.WorkspaceID{}, &shown, filter)
		var titles []string
		for i := range found.Groups {
			titles = append(titles, found.Groups[i].Title)
		}
		if !slices.Equal(titles, c.want) || found.Fail {
			t.Errorf("%s: %q, want %q", name, titles, c.want)
		}
		if q := *s.asked; q.Text != "otters" || !q.Since.Equal(from) || !q.Until.Equal(to) || q.APIKey != key {
			t.Errorf("%s: asked for %+v", name, q)
		}
	}
}

func (s stored) Sessions(_ context.Context, _ tenants.WorkspaceID, filter session.Filter) (session.Page, error) {
	if filter.IDs != nil {
		var page session.Page
		for id, of := range s.of {
			if slices.Contains(filter.IDs, id) && (filter.Client == "" || of.Client == filter.Client) && (filter.Model == "" || of.Model == filter.Model) {
				page.Sessions = append(page.Sessions, of)
			}
		}
		return page, nil
	}
	if filter.Limit > len(s.all) {
		return session.Page{Sessions: s.all}, nil
	}
	return session.Page{Sessions: s.all[:filter.Limit], Next: "next"}, nil
}

// readable is a workspace in which a person may read the sessions of one key, and has no stars.
type readable struct {
	data
	stars

	key uuid.UUID
}

type (
	data  = tenants.Data
	stars = tenants.Stars
)

func (r readable) Reader(context.Context, tenants.WorkspaceID, uuid.UUID) (tenants.Reader, error) {
	return tenants.Reader{Own: true, Keys: []uuid.UUID{r.key}}, nil
}

func (readable) Starred(context.Context, tenants.WorkspaceID, uuid.UUID) ([]uuid.UUID, error) {
	return nil, nil
}

// As many sessions are exported as one file holds, and no file is made if the person may not read one of them, the
// first or the last.
func TestExportIsOfReadableSessionsThatFitOneFile(t *testing.T) {
	t.Parallel()
	own := uuid.New()
	for name, c := range map[string]struct {
		sessions int
		others   []int // of them, those of another key
		want     exportRefusal
	}{
		"none":                  {0, nil, nothingToExport},
		"one":                   {1, nil, ""},
		"as many as fit":        {mostExported, nil, ""},
		"one too many":          {mostExported + 1, nil, tooManyToExport},
		"many":                  {3 * mostExported, nil, tooManyToExport},
		"first is another's":    {3, []int{0}, notYoursToRead},
		"second is another's":   {3, []int{1}, notYoursToRead},
		"last is another's":     {3, []int{2}, notYoursToRead},
		"the only is another's": {1, []int{0}, notYoursToRead},
	} {
		all := make([]session.Overview, c.sessions)
		for i := range all {
			if all[i] = (session.Overview{ID: uuid.New(), APIKey: own}); slices.Contains(c.others, i) {
				all[i].APIKey = uuid.New()
			}
		}
		rights := readable{key: own}
		h := Handler{deps: Deps{Sessions: stored{all: all}, Readers: rights, Stars: rights, Now: time.Now}}
		context := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?all=1", nil), nil)
		ids, refused, err := h.exported(context, tenants.Principal{})
		if err != nil || refused != c.want || (refused == "") != (len(ids) == c.sessions && c.sessions > 0) {
			t.Errorf("%s: %d sessions, %q, %v", name, len(ids), refused, err)
		}
	}
}
