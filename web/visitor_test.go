package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// visitedDemo serves a tenant's workspace as a public demo, beside routes of the API and the proxy.
func visitedDemo(t *testing.T) (*tenant, *echo.Echo) {
	t.Helper()
	var deps web.Deps
	product := webtest.Start(t, func(_ *webtest.Product, of *web.Deps) { deps = *of })
	own := newTenant(t, product, "ant")
	deps.People.Visitor = func(context.Context) (tenants.Principal, error) {
		return tenants.Principal{User: own.User, Workspace: own.Workspace, Role: tenants.Visitor}, nil
	}
	e := echo.New()
	reached := func(c echo.Context) error {
		t.Errorf("%s %s is open", c.Request().Method, c.Request().URL.Path)
		return c.NoContent(http.StatusOK)
	}
	for _, path := range []string{"/v1/messages", "/mcp", "/api/v1/pipeline"} {
		e.Any(path, reached)
	}
	web.New(web.Config{PublicURL: webtest.PublicURL, Codecs: formats.ByFormat(), Defaults: pipeline.Layer{Source: pipeline.FromDefault, Modules: "ipc"}, MailToken: "mails", Demo: "Only to look at."}, deps).Register(e)
	return own, e
}

func visit(e *echo.Echo, method, path, place, accept string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(""))
	request.RemoteAddr = place + ":4711"
	request.Header.Set("Accept", accept)
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer := httptest.NewRecorder()
	e.ServeHTTP(answer, request)
	return answer
}

// S54: of a public demo, everyone may look at pages, and no route changes anything: each is tried, and the database
// has the same rows afterwards. A new route is closed until visits names it.
func TestPublicDemoIsOnlyToLookAt(t *testing.T) {
	t.Parallel()
	own, e := visitedDemo(t)
	visited := map[string]string{
		"/": "", "/overview": "", "/spend": "", "/spend/statement": "", "/more": "", "/jump": "", "/docs": "", "/docs/:page": "/docs/data",
		"/sessions": "", "/sessions/:id": "/sessions/" + own.session, "/sessions/:id/find": "/sessions/" + own.session + "/find", "/sessions/:id/count": "/sessions/" + own.session + "/count",
		"/sessions/compare": "/sessions/compare?a=" + own.session, "/requests": "", "/requests/:id": "/requests/" + own.request, "/requests/compare": "/requests/compare?a=" + own.request,
		"/pipeline": "", "/pipeline/history": "", "/pipeline/yaml": "", "/pipeline/history/:version": "/pipeline/history/0", "/patterns": "", "/static/*": "/static/none",
	}
	reaches := reaches()
	before := own.Product.Database.Rows(t, own.Workspace.ID)
	for _, route := range e.Routes() {
		if route.Method == echo.RouteNotFound {
			continue
		}
		path := route.Path
		if try := reaches[route.Method+" "+route.Path]; try.path != nil {
			path = try.path(own)
		}
		isOpen := route.Path == "/static/*" || route.Method+route.Path == "POST/theme" || route.Method+route.Path == "POST/pipeline/preview"
		if as, listed := visited[route.Path]; listed && route.Method == http.MethodGet {
			if isOpen = true; as != "" {
				path = as
			}
		}
		answer := visit(e, route.Method, path, "192.0.2."+route.Method[:1], "text/html")
		text := answer.Body.String()
		if refused := answer.Code == http.StatusForbidden; refused == isOpen || answer.Code >= http.StatusInternalServerError {
			t.Errorf("%s %s: status %d, open %v", route.Method, path, answer.Code, isOpen)
		}
		if !isOpen && !strings.Contains(text, "This demo can only be looked at") && route.Method != http.MethodHead {
			t.Errorf("%s %s: %.200s", route.Method, path, text)
		}
		for _, secret := range []string{"plm_live_", "sk-ant-", "Log out", `action="/keys`, `href="/keys"`, `href="/providers"`, `href="/account"`} {
			if strings.Contains(text, secret) && !strings.HasPrefix(route.Path, "/docs") {
				t.Errorf("%s %s shows %q", route.Method, path, secret)
			}
		}
	}
	if after := own.Product.Database.Rows(t, own.Workspace.ID); after != before {
		t.Errorf("a visitor changed the workspace:\n%s\nwas:\n%s", after, before)
	}
}

// S54: a program is refused in its own words, and one address cannot open pages without a pause.
func TestPublicDemoRefusesProgramsAndHurry(t *testing.T) {
	t.Parallel()
	_, e := visitedDemo(t)
	if answer := visit(e, http.MethodPost, "/v1/messages", "192.0.2.1", "application/json"); answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), `"read_only_demo"`) {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
	opened, last := 0, 0
	for ; opened < 1000 && last != http.StatusTooManyRequests; opened++ { // some are given back meanwhile
		last = visit(e, http.MethodGet, "/", "192.0.2.2", "text/html").Code
	}
	if other := visit(e, http.MethodGet, "/", "192.0.2.3", "text/html").Code; opened <= 60 || last != http.StatusTooManyRequests || other != http.StatusSeeOther {
		t.Errorf("page %d: %d; of another address: %d", opened, last, other)
	}
}
