package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// reach says who may go through a route of the dashboard.
type reach struct {
	roles string // initials of owner, admin, member, viewer, billing; empty: everybody, logged in or not
	// path is the route with ids of a workspace; nil for a route without.
	path func(of *tenant) string
}

// reaches has an entry for every route.
func reaches() map[string]reach {
	session := func(of *tenant) string { return "/sessions/" + of.session }
	key := func(of *tenant) string { return "/keys/" + of.key + "/revoke" }
	provider := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/providers/" + of.provider + "/" + action }
	}
	return map[string]reach{
		"GET /static/*": {}, "HEAD /static/*": {},
		"GET /": {}, "GET /signup": {}, "POST /signup": {}, "GET /login": {}, "POST /login": {}, "POST /theme": {},

		"POST /logout":                {roles: "oamvb"},
		"GET /overview":               {roles: "oamvb"},
		"GET /overview/first-request": {roles: "oamvb"},
		"GET /more":                   {roles: "oamvb"},

		"GET /keys":             {roles: "oamv"},
		"GET /keys/new":         {roles: "oam"},
		"POST /keys":            {roles: "oam"},
		"GET /keys/:id/revoke":  {roles: "oam", path: key},
		"POST /keys/:id/revoke": {roles: "oam", path: key},

		"GET /providers":             {roles: "oamv"},
		"GET /providers/new":         {roles: "oa"},
		"POST /providers":            {roles: "oa"},
		"POST /providers/:id/test":   {roles: "oa", path: provider("test")},
		"GET /providers/:id/remove":  {roles: "oa", path: provider("remove")},
		"POST /providers/:id/remove": {roles: "oa", path: provider("remove")},

		"GET /billing":           {roles: "ob"},
		"POST /billing/checkout": {roles: "ob"},
		"POST /billing/portal":   {roles: "ob"},

		"GET /pipeline":     {roles: "oamv"},
		"POST /pipeline":    {roles: "oa"},
		"GET /sessions":     {roles: "oamv"},
		"GET /sessions/:id": {roles: "oamv", path: session},
	}
}

// tenant is a workspace with one of everything.
type tenant struct {
	*webtest.Person

	session, key, provider string
}

func newTenant(t *testing.T, product *webtest.Product, name string) *tenant {
	t.Helper()
	owner := product.SignUp(t, name)
	owner.TalkOnce(owner.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"a question from `+name+`"}]}`, claudeCode)
	keys, err := product.DB.APIKeys(t.Context(), owner.Workspace.ID)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	providers, err := product.DB.ProviderKeys(t.Context(), owner.Workspace.ID)
	if err != nil || len(providers) == 0 {
		t.Fatalf("%d provider keys, %v", len(providers), err)
	}
	return &tenant{Person: owner, session: owner.Newest().ID.String(), key: keys[0].ID.String(), provider: providers[0].ID.String()}
}

// S3: every role may what its name says through every route, and nothing of
// another workspace. A route without an entry fails.
func TestRolesAndWorkspacesAreCheckedOnEveryRoute(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	ours, theirs := newTenant(t, product, "ant"), newTenant(t, product, "zebra")
	reaches := reaches()
	for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing} {
		colleague := ours.Colleague(role)
		for _, route := range product.Routes {
			name := route.Method + " " + route.Path
			try, listed := reaches[name]
			if !listed && route.Method != echo.RouteNotFound {
				t.Errorf("%s: this test does not say who may go through it", name)
			}
			if try.roles == "" || name == "POST /logout" { // it ends the login that the test works with
				continue
			}
			path := route.Path
			if try.path != nil {
				path = try.path(theirs)
			}
			page := colleague.Get(path)
			if route.Method == http.MethodPost {
				page = colleague.Post(path)
			}
			may := strings.Contains(try.roles, string(role)[:1])
			switch {
			case may == (page.Status == http.StatusForbidden):
				t.Errorf("%s as %s: status %d", name, role, page.Status)
			case may && try.path != nil && page.Status != http.StatusNotFound:
				t.Errorf("%s as %s of another workspace: status %d", name, role, page.Status)
			case strings.Contains(page.HTML, "zebra"):
				t.Errorf("%s as %s shows something of another workspace", name, role)
			}
		}
	}
	// What nobody else reached is there for its owner.
	for name, try := range reaches {
		if method, _, _ := strings.Cut(name, " "); method == http.MethodGet && try.path != nil {
			if page := theirs.Get(try.path(theirs)); page.Status != http.StatusOK {
				t.Errorf("%s by its owner: status %d", name, page.Status)
			}
		}
	}
}
