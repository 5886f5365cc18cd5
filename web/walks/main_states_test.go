package walks_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// mainPages are the pages that people work with.
func mainPages(session string) []look {
	return []look{
		{"overview", "/overview?range=7d", charted}, {"sessions", "/sessions", always}, {"session", "/sessions/" + session, charted},
		{"requests", "/requests", always}, {"compression", "/pipeline", replayed}, {"spend", "/spend", always}, {"keys", "/keys", always},
		{"find", "/sessions?q=archive&range=30d", always},
	}
}

// line is a server in front of the product, whose connections can be cut.
type line struct {
	*httptest.Server

	isCut atomic.Bool
}

func newLine(t *testing.T, product *webtest.Product) *line {
	t.Helper()
	target, err := url.Parse(product.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	l := new(line)
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.isCut.Load() {
			panic(http.ErrAbortHandler)
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *line) cut() {
	l.isCut.Store(true)
	l.CloseClientConnections()
}

func (l *line) mend() { l.isCut.Store(false) }

// The main pages in every state: with data, for someone who sees only a part, empty, forbidden, without the server, while
// it is slow, and without the database.
func TestMainPagesLookRightInEveryState(t *testing.T) {
	fulltest.Only(t, "it looks at fifty states of pages in four looks each, which takes a minute of CPU")
	t.Parallel()
	product := webtest.Start(t)
	owner, fresh, late := product.SignUp(t, "northbeam"), product.SignUp(t, "newcomer"), product.SignUp(t, "latecomer")
	owner.Talk(owner.Connect(webtest.Provider(t, window), "laptop-mira"), window, webtest.LongTalk(), claudeCode)
	session := owner.Newest().ID.String()
	if n, err := owner.Index.IndexPending(t.Context(), 100); err != nil || n == 0 {
		t.Fatalf("%d indexed: %v", n, err)
	}
	browser := browsertest.Start(t)
	open := func(person *webtest.Person) *browsertest.Tab {
		return browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	}

	whole := open(owner)
	for _, page := range mainPages(session) {
		whole.Go(page.path)
		whole.Until(page.ready)
		whole.CheckFit("whole " + page.name)
	}
	member, billing, newcomer := open(owner.Colleague(tenants.Regular)), open(owner.Colleague(tenants.Billing)), open(fresh)
	for _, page := range mainPages(session) {
		if page.name != "session" {
			member.Go(page.path)
			member.CheckFit("own " + page.name)
			newcomer.Go(page.path)
			newcomer.CheckFit("empty " + page.name)
		}
		if page.name != "overview" && page.name != "requests" && page.name != "spend" { // which every role may open
			billing.Expect(http.StatusForbidden)
			billing.Go(page.path)
			billing.See(`[data-testid="problem"]`)
			billing.CheckFit("forbidden " + page.name)
		}
	}
	member.Expect(http.StatusNotFound)
	member.Go("/sessions/" + session)
	member.See(`[data-testid="problem"]`)
	member.CheckFit("own session")

	for _, seen := range browsertest.Looks() {
		slow := browser.Open(t, browsertest.View{URL: product.URL, Theme: seen.Theme, Width: seen.Width, Cookies: owner.Cookies()})
		for _, page := range mainPages(session) {
			slow.Go(page.path)
			slow.Until(page.ready)
			slow.Run(`window.fetch = () => new Promise((_, fail) => { window.end = () => fail(new DOMException('', 'AbortError')); })`)
			slow.Run(`document.querySelector('a[href="/spend"], a[href="/more"]').click()`)
			slow.Until(`document.documentElement.dataset.waiting === 'yes'`)
			slow.Picture(fmt.Sprintf("slow %s %s %d", page.name, seen.Theme, seen.Width))
			slow.Run(`end()`)
		}
	}
	between := newLine(t, product)
	alone := browser.Open(t, browsertest.View{URL: between.URL, Theme: "light", Cookies: owner.Cookies()})
	alone.ExpectNoServer()
	for _, page := range mainPages(session) {
		alone.Go(page.path)
		alone.Until(page.ready)
		between.cut()
		alone.Until(`document.querySelector('div[data-gone]').checkVisibility()`)
		alone.CheckFit("disconnected " + page.name)
		between.mend()
	}

	for _, statement := range []string{"ALTER TABLE sessions RENAME TO gone_sessions", "ALTER VIEW rollups_now RENAME TO gone_rollups", "ALTER TABLE exchanges RENAME TO gone_exchanges"} {
		if _, err := product.Database.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	known, unknown := open(owner), open(late)
	for _, page := range mainPages(session) {
		broken := known
		if page.name == "compression" {
			broken = unknown // a preview is kept for half a minute
		}
		broken.Expect(http.StatusInternalServerError)
		broken.Go(page.path)
		broken.See(`[data-testid="problem"], [data-testid="failed"], [data-testid="preview-failed"]`)
		broken.CheckFit("failed " + page.name)
	}
}
