package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/web/webtest"
)

// BenchmarkPages opens every page of a workspace with PALIMPSEST_BENCH_EXCHANGES
// exchanges of 90 days and a session for ten of them: 20,000 without. It tells how long
// an answer takes from asking to its last byte, through HTTP on the loopback, test,
// dashboard and database on the same machine, and writes the table to
// PALIMPSEST_BENCH_WRITE. To reach: a p95 below 50 ms with a million.
func BenchmarkPages(b *testing.B) {
	exchanges := 20_000
	if text := os.Getenv("PALIMPSEST_BENCH_EXCHANGES"); text != "" {
		var err error
		if exchanges, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	person := webtest.Start(b).SignUp(b, "northbeam")
	began := time.Now()
	dbtest.FillWorkspace(b, person.Database.Owner(b), person.Workspace.ID, exchanges)
	b.Logf("%d exchanges in %s", exchanges, time.Since(began).Round(time.Second))
	table := new(webtest.Timings)
	for _, page := range pagesOfALargeWorkspace(b, person) {
		b.Run(page.name(), func(b *testing.B) {
			var header []string
			if page.palette {
				header = []string{"HX-Request-Type", "partial"}
			}
			table.Measure(b, person, page.name(), page.path, header...)
		})
	}
	if path := os.Getenv("PALIMPSEST_BENCH_WRITE"); path != "" {
		table.Write(b, path, "bench-dashboard", fmt.Sprintf("%d exchanges, %d sessions", exchanges, exchanges/10))
	}
}

// timed is a page to be measured.
type timed struct {
	path    string
	words   string // what it is, where the address does not say it; empty: it does
	palette bool   // as the palette asks for it
}

func (p timed) name() string {
	name := "`" + p.path + "`"
	if p.words != "" {
		name = p.words
	}
	if p.palette {
		name += ", in the palette"
	}
	return name
}

// talkOf has a session go through the proxy, which compacts it, and returns it: those that
// a workspace is filled with have figures, and nothing that was said.
func talkOf(b *testing.B, person *webtest.Person) session.Overview {
	b.Helper()
	const window = 75_000
	talk := sessiontest.Generate(7, sessiontest.Options{Format: conversation.Anthropic, Turns: 40, TargetTokens: 80_000})
	person.Talk(person.Connect(webtest.Provider(b, window), "laptop"), window, talk, "claude-cli/2.1.0 (external, cli)")
	if talked := person.Newest(); talked.Sums.Epochs > 0 {
		return talked
	}
	b.Fatal("the session was not compacted")
	return session.Overview{}
}

// chosen returns the newest sessions as the form of the list chooses them.
func chosen(person *webtest.Person) string {
	ids := url.Values{}
	person.Get("/sessions").Find(`input[name="id"]`).Each(func(_ int, box *goquery.Selection) { ids.Add("id", box.AttrOr("value", "")) })
	return ids.Encode()
}

// pagesOfALargeWorkspace returns every page of a workspace, the lists narrowed in every
// way.
func pagesOfALargeWorkspace(b *testing.B, person *webtest.Person) []timed {
	b.Helper()
	const key = "00000000-0000-0000-0000-000000000003"
	var opened string
	if err := person.Database.Owner(b).QueryRow(b.Context(), "SELECT id::text FROM exchanges ORDER BY at DESC OFFSET 100 LIMIT 1").Scan(&opened); err != nil {
		b.Fatal(err)
	}
	talked := talkOf(b, person).ID.String()
	older := func(list, path string) timed {
		page := person.Get(path)
		link, found := page.Find(`[data-testid="older"]`).Attr("href")
		if page.Status != http.StatusOK || !found {
			b.Fatalf("%s: status %d, with an older page: %t", path, page.Status, found)
		}
		return timed{path: link, words: "`" + list + "`, a page far back"}
	}
	far := time.Now().Add(-60 * 24 * time.Hour).UTC().Format(time.DateOnly)
	pages := []timed{
		{path: "/requests/" + opened, words: "`/requests/…`"},
		{path: "/requests?open=" + opened, words: "`/requests?open=…`"},
		{path: "/requests?id=" + opened, words: "`/requests?id=…`"},
		{path: "/requests?session=" + talked, words: "`/requests?session=…`"},
		older("/requests", "/requests?from=2023-01-01&to="+far),
		older("/sessions", "/sessions?from=2023-01-01&to="+far),
		{path: "/sessions?q=" + talked[:8], words: "`/sessions?q=<start of an id>`"},
		{path: "/sessions/" + talked, words: "`/sessions/…`"},
		{path: "/sessions/" + talked + "?table=1", words: "`/sessions/…?table=1`"},
		{path: "/sessions/" + talked + "/delete", words: "`/sessions/…/delete`"},
		{path: "/sessions/delete?" + chosen(person), words: "`/sessions/delete`, a page of sessions chosen"},
	}
	for _, path := range []string{
		"/overview?range=24h", "/overview?range=7d", "/overview?range=30d", "/overview?range=90d", "/overview?range=30d&client=client-1",
		"/overview?range=90d&by=key&model=model-2", "/overview?range=7d&key=" + key, "/overview?from=2020-01-01T00:00&to=2024-12-30T00:00",
		"/spend", "/spend?by=project", "/spend?by=tag:run&range=90d", "/spend?by=key&range=30d", "/spend?by=client&from=2020-01-01T00:00&to=2024-12-30T00:00", "/spend/statement",
		"/requests", "/requests?range=24h", "/requests?key=" + key, "/requests?client=client-1", "/requests?client=rare", "/requests?model=model-2",
		"/requests?model=rare", "/requests?client=rare&model=rare", "/requests?status=5xx", "/requests?error_from=proxy", "/requests?miss=provider",
		"/requests?sort=cost", "/requests?module=patterns:applied", "/requests?module=ipc:failed", "/requests?tag=env%3Dprod", "/requests?tag=run%3D7", "/requests?tag=env%3Dprod&module=ipc:failed",
		"/sessions", "/sessions?range=24h", "/sessions?range=30d", "/sessions?show=compressed", "/sessions?show=bridged", "/sessions?show=problems",
		"/sessions?client=client-1", "/sessions?client=rare", "/sessions?model=model-2", "/sessions?key=" + key, "/sessions?show=problems&client=rare&range=30d",
		"/sessions?q=fix+the+par", "/sessions?q=webhook", "/sessions?q=ebhoo", "/sessions?q=gateway+80017", "/sessions?q=nothing+has+this",
		"/pipeline", "/pipeline?module=semantic-cache", "/pipeline/history", "/pipeline/yaml", "/patterns", "/patterns/new",
		"/keys", "/keys/new", "/providers", "/providers/new", "/members", "/members/invite", "/billing", "/settings", "/settings/import", "/audit", "/audit?action=key", "/audit?actor=colleague7",
		"/account", "/workspaces", "/more", "/operator",
	} {
		pages = append(pages, timed{path: path})
	}
	for _, typed := range []string{"", "f", "fix+the+par", "webhook", "ebhoo", "gateway+80017", "nothing+has+this", "client-1", talked[:8], talked} {
		pages = append(pages, timed{path: "/jump?q=" + typed, palette: true})
	}
	return append(pages, timed{path: "/jump?q=webhook"})
}
