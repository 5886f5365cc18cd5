package pages_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"palimpsest"
	"palimpsest/pipeline/modules"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// docsListed returns the paths of all pages of the documentation.
func docsListed(t *testing.T, reader *webtest.Person) []string {
	t.Helper()
	var all []string
	reader.Get("/docs").Find(`[data-testid="doc"] a`).Each(func(_ int, link *goquery.Selection) {
		all = append(all, link.AttrOr("href", ""))
	})
	if len(all) < 10 {
		t.Fatalf("/docs lists %v", all)
	}
	return all
}

// Strangers read the pages, too: each has its title, the version, and no markdown that was
// left as it is.
func TestEveryPageOfTheDocsIsShown(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	member := product.SignUp(t, "northbeam")
	for _, reader := range []*webtest.Person{product.Stranger(t), member} {
		for _, path := range docsListed(t, reader) {
			page := reader.Get(path)
			source, err := palimpsest.Docs.ReadFile("docs/" + filepath.Base(path) + ".md")
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			first, _, _ := strings.Cut(string(source), "\n")
			if title := page.Text(`[data-testid="doc"] h1`); page.Status != http.StatusOK || "# "+title != first {
				t.Errorf("%s: status %d, title %q", path, page.Status, title)
			}
			text := page.Find(`[data-testid="doc"]`).Clone()
			text.Find("code, pre").Remove()
			for _, mark := range []string{"](", "**", "| ---", "\n## "} {
				if strings.Contains(text.Text(), mark) {
					t.Errorf("%s shows %q", path, mark)
				}
			}
			if page.Has("[style]") || page.Has(`[data-testid="doc"] script`) {
				t.Errorf("%s has inline styles or scripts", path)
			}
			if page.TestID("version") != "Version "+webtest.Version {
				t.Errorf("%s: %q", path, page.TestID("version"))
			}
		}
	}
	if page := member.Get("/docs/decisions"); page.Status != http.StatusNotFound {
		t.Errorf("a page that is not for users: status %d", page.Status)
	}
}

// Every link within the product leads to a page, and one with an anchor to its heading.
func TestEveryLinkToTheDocsLeadsSomewhere(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	reader := product.SignUp(t, "northbeam") // the first operates the installation
	open := map[string]webtest.Page{}
	at := func(path string) webtest.Page {
		if _, is := open[path]; !is {
			open[path] = reader.Get(path)
		}
		return open[path]
	}
	reader.TalkOnce(reader.Connect(webtest.Provider(t, webtest.Window), "laptop"), webtest.Window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does it answer 409?"}]}`, webtest.ClaudeCode)
	session := reader.Newest().ID.String()
	exchanges, _, err := product.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), reader.Workspace.ID, tenants.ExchangeFilter{Limit: 1})
	if err != nil || len(exchanges) != 1 {
		t.Fatalf("%d requests, %v", len(exchanges), err)
	}
	request := exchanges[0].ID.String()
	from := append(docsListed(t, reader), "/settings/alerts", "/sessions/"+session, "/sessions/compare?a="+session, "/requests/"+request, "/requests/compare?a="+request, "/docs", "/docs?q=cache", "/overview", "/sessions", "/requests", "/pipeline", "/patterns", "/keys", "/keys/new", "/providers",
		"/members", "/audit", "/settings", "/billing", "/settings/sign-on", "/account", "/operator", "/more")
	for _, module := range modules.Catalog().Names() {
		from = append(from, "/pipeline?module="+module)
	}
	count := 0
	for _, path := range from {
		at(path).Find(`a[href^="/docs"], [data-testid="doc"] a`).Each(func(_ int, link *goquery.Selection) {
			target, anchor, _ := strings.Cut(link.AttrOr("href", ""), "#")
			if strings.HasPrefix(target, "http") || strings.HasPrefix(target, "/api/") {
				return
			}
			if target == "" {
				target = path
			}
			count++
			page := at(target)
			if page.Status != http.StatusOK || anchor != "" && page.Find(`[id="`+anchor+`"]`).Length() != 1 {
				t.Errorf("%s links to %s#%s: status %d, or no such heading", path, target, anchor, page.Status)
			}
		})
		if page := at(path); !strings.HasPrefix(path, "/docs") && !page.Has(`.top a[href^="/docs"]`) {
			t.Errorf("%s (status %d) does not lead to the docs", path, page.Status)
		}
	}
	if count < 200 {
		t.Errorf("%d links", count)
	}
	for _, path := range []string{"/", "/login"} {
		if !product.Stranger(t).Get(path).Has(`a[href="/docs"]`) {
			t.Errorf("%s does not lead to the docs", path)
		}
	}
}

func TestSearchOfTheDocsFindsWhatHasEveryWord(t *testing.T) {
	t.Parallel()
	reader := webtest.Start(t).Stranger(t)
	first := func(query string) string {
		return reader.Get("/docs?q="+query).Find(`.docs-cards a`).First().AttrOr("href", "")
	}
	for query, want := range map[string]string{
		"changing+master+key": "/docs/operations#changing-the-master-key",
		"RECALL+model":        "/docs/memory#recall-by-the-model",
		"%20%20metrics":       "/docs/monitoring#metrics",
	} {
		if got := first(query); got != want {
			t.Errorf("%s leads to %q first, want %q", query, got, want)
		}
	}
	found := reader.Get("/docs?q=palimpsest_mover_lag_seconds")
	if found.TestID("found") != "1 section with “palimpsest_mover_lag_seconds”" || found.Text("mark") != "palimpsest_mover_lag_seconds" {
		t.Errorf("a metric: %s, %q", found.TestID("found"), found.Text("mark"))
	}
	nothing := reader.Get("/docs?q=%3Cb%3Exyzzy")
	if nothing.TestID("found") != "0 sections with “<b>xyzzy”" || nothing.Has(".docs-cards a") {
		t.Errorf("nonsense: %s", nothing.TestID("found"))
	}
	if long := reader.Get("/docs?q=" + strings.Repeat("a", 201)); long.Status != http.StatusBadRequest {
		t.Errorf("a query beyond the bound: status %d", long.Status)
	}
}
