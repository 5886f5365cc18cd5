package pages_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/jump"
	"palimpsest/web/webtest"
)

// jumpSetup returns someone whose workspace has a session, a key and a provider key.
func jumpSetup(t *testing.T, product *webtest.Product) *webtest.Person {
	t.Helper()
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, 100_000), "laptop-mira")
	person.TalkOnce(secret, 100_000, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the zeppelin webhook answer 409?"}]}`, "claude-cli/2.1.0")
	return person
}

// linked reports whether a page leads to a path.
func linked(page webtest.Page, path string) bool {
	return page.Has(`main a[href="`+path+`"]`) || page.Has(`[role="option"][href="`+path+`"]`)
}

func TestEverythingIsFoundByItsNameOnThePageAndInThePalette(t *testing.T) {
	t.Parallel()
	person := jumpSetup(t, webtest.Start(t))
	session := person.Newest()
	keys, err := person.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	for query, path := range map[string]string{
		"": "/sessions/" + session.ID.String(), "prov": "/providers", "create key": "/keys/new", "2fa": "/account/second-factor", "cursor": "/keys#clients",
		"zeppelin": "/sessions/" + session.ID.String(), session.ID.String(): "/sessions/" + session.ID.String(), strings.ToUpper(session.ID.String()): "/sessions/" + session.ID.String(),
		"mira": "/keys/" + keys[0].ID.String() + "/edit", "patt": "/patterns", "retention": "/settings#retention", "time zone": "/settings#reading",
		"download archive": "/settings#export", "delete workspace": "/settings#delete",
	} {
		if page := person.Get("/jump?q=" + url.QueryEscape(query)); page.Status != http.StatusOK || !linked(page, path) {
			t.Errorf("%q does not lead to %s: %s", query, path, page.Text("main"))
		}
		part := person.Get("/jump?q="+url.QueryEscape(query), "HX-Request-Type", "partial")
		if part.Has("main") || !linked(part, path) {
			t.Errorf("the palette: %q does not lead to %s: %s", query, path, part.HTML)
		}
	}
	if page := person.Get("/jump?q=anthropic-prod"); !page.Has(`main a[href^="/providers#provider-"]`) {
		t.Errorf("no provider key: %s", page.Text("main"))
	}
	if page := person.Get("/jump?q=xyzzy"); !strings.Contains(page.TestID("empty"), "No matches") {
		t.Errorf("nothing: %s", page.Text("main"))
	}
	if page := person.Get("/jump?q=" + strings.Repeat("x", 201)); page.Status != http.StatusBadRequest {
		t.Errorf("a long query: %d", page.Status)
	}
}

func TestOnlyWhatSomebodyMayOpenIsFound(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := jumpSetup(t, product)
	stranger := product.SignUp(t, "stranger")
	for role, hidden := range map[tenants.Role][]string{
		tenants.Billing: {"/sessions", "/keys", "/keys/new", "/providers", "/settings", "/patterns", "/members", "/sessions/" + person.Newest().ID.String()},
		tenants.Viewer:  {"/keys/new", "/providers/new", "/settings", "/members", "/patterns/new", "/billing"},
		tenants.Regular: {"/providers/new", "/settings", "/members/invite", "/billing"},
		tenants.Admin:   {"/billing"},
	} {
		colleague := person.Colleague(role)
		for _, query := range []string{"", "new", "settings", "zeppelin", "laptop", "bill", "key", "a"} {
			page := colleague.Get("/jump?q=" + query)
			for _, path := range hidden {
				if linked(page, path) {
					t.Errorf("%s, %q leads to %s", role, query, path)
				}
			}
		}
	}
	for _, query := range []string{"", "zeppelin", "laptop-mira", person.Newest().ID.String()} {
		if page := stranger.Get("/jump?q=" + query); strings.Contains(page.Text("main .jump-group"), "zeppelin") || strings.Contains(page.Text("main .jump-group"), "mira") {
			t.Errorf("another workspace is shown for %q: %s", query, page.Text("main"))
		}
	}
}

func TestTitlesAndTextAreFoundByWhoMayReadThem(t *testing.T) {
	t.Parallel()
	person := jumpSetup(t, webtest.Start(t))
	if _, err := person.Index.IndexPending(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	hits := person.Get("/jump?q=zeppelin&in=archive")
	link := hits.Find(`[data-testid="hits"] a`).AttrOr("href", "")
	if !strings.Contains(hits.TestID("hits"), "zeppelin webhook") || !strings.HasPrefix(link, "/sessions/"+person.Newest().ID.String()) || person.Get(link).Status != http.StatusOK {
		t.Errorf("in the archive: %s, to %s", hits.Text("main"), link)
	}
	if page := person.Get("/jump?q=nothing+said+so&in=archive"); !page.Has(`[data-testid="empty"]`) {
		t.Errorf("nothing said: %s", page.Text("main"))
	}
	person.Post("/settings", "time_zone", "UTC", "managers_read", "all", "members_read", "own", "viewers_read", "none")
	viewer, member := person.Colleague(tenants.Viewer), person.Colleague(tenants.Regular)
	if page := viewer.Get("/jump?q=zeppelin&in=archive"); page.Status != http.StatusForbidden {
		t.Errorf("who may read nothing searches: %d", page.Status)
	}
	if page := member.Get("/jump?q=zeppelin&in=archive"); page.Status != http.StatusOK || page.Has(`[data-testid="hits"]`) {
		t.Errorf("who may read their own finds: %s", page.Text("main"))
	}
	for _, colleague := range []*webtest.Person{viewer, member} {
		if page := colleague.Get("/jump?q=zeppelin"); strings.Contains(page.HTML, "webhook") {
			t.Errorf("a title is shown: %s", page.Text("main"))
		}
	}
	if page := viewer.Get("/jump?q=zeppelin", "HX-Request-Type", "partial"); page.Has(`[href*="in=archive"]`) {
		t.Error("who may read nothing is offered to search")
	}
}

// jumpFailing never answers in time.
type jumpFailing struct{ archive.Searcher }

func (jumpFailing) Search(context.Context, tenants.WorkspaceID, archive.Query) ([]archive.Hit, error) {
	return nil, errors.New("canceling statement due to user request")
}

func TestSlowSearchSaysSoAndKeepsThePage(t *testing.T) {
	t.Parallel()
	person := jumpSetup(t, webtest.Start(t, func(_ *webtest.Product, deps *web.Deps) { deps.Conversations.Searcher = jumpFailing{} }))

	page := person.Get("/jump?q=zeppelin&in=archive")
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("slow"), "did not answer") || strings.Contains(page.HTML, "canceling") {
		t.Errorf("%d: %s", page.Status, page.Text("main"))
	}
}

// stuck never lists its sessions.
type stuck struct{ session.Records }

func (stuck) Sessions(ctx context.Context, _ tenants.WorkspaceID, _ session.Filter) (session.Page, error) {
	<-ctx.Done()
	return session.Page{}, ctx.Err()
}

// everything may be read.
type everything struct{ tenants.Data }

func (everything) Reader(context.Context, tenants.WorkspaceID, uuid.UUID) (tenants.Reader, error) {
	return tenants.Reader{All: true}, nil
}

// What takes too long is left out, and the pages are listed all the same.
func TestSlowGroupIsLeftOutAndSaysSo(t *testing.T) {
	t.Parallel()
	handler := jump.New(jump.Deps{Sessions: stuck{}, Readers: everything{}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Within: time.Nanosecond})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/jump", http.NoBody)
	request.Header.Set("HX-Request-Type", "partial")
	answer := httptest.NewRecorder()
	if err := handler.Show(echo.New().NewContext(request, answer), tenants.Principal{Role: tenants.Owner}); err != nil {
		t.Fatal(err)
	}
	if said := answer.Body.String(); !strings.Contains(said, "The search took too long.") || !strings.Contains(said, `href="/keys"`) {
		t.Errorf("the palette says %s", said)
	}
}
