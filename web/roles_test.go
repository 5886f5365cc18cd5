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
	ends bool // the login that this test works with
}

// reaches has an entry for every route.
func reaches() map[string]reach {
	session := func(of *tenant) string { return "/sessions/" + of.session }
	key := func(of *tenant) string { return "/keys/" + of.key + "/revoke" }
	login := func(of *tenant) string { return "/account/logins/" + of.login + "/end" }
	member := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/members/" + of.viewer + "/" + action }
	}
	invitation := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/members/invitations/" + of.invitation + "/" + action }
	}
	keyAt := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/keys/" + of.key + "/" + action }
	}
	provider := func(action string) func(of *tenant) string {
		return func(of *tenant) string { return "/providers/" + of.provider + "/" + action }
	}
	return map[string]reach{
		"GET /static/*": {}, "HEAD /static/*": {},
		"GET /": {}, "GET /signup": {}, "POST /signup": {}, "GET /login": {}, "POST /login": {}, "POST /theme": {},

		"GET /reset": {}, "POST /reset": {}, "GET /reset/:secret": {}, "GET /reset/new": {}, "POST /reset/new": {},
		"GET /verify": {}, "POST /verify": {}, "GET /verify/:secret": {}, "GET /verify/confirm": {}, "POST /verify/confirm": {},
		"GET /dev/mail": {},

		"GET /account":               {roles: "oamvb"},
		"POST /account/password":     {roles: "oamvb"},
		"POST /account/email":        {roles: "oamvb"},
		"POST /account/verification": {roles: "oamvb"},
		"POST /account/logins/end":   {roles: "oamvb", ends: true},
		"GET /login/code":            {}, "POST /login/code": {},

		"GET /login/sign-on": {}, "POST /login/sign-on": {}, "GET /login/sign-on/callback": {},

		"GET /settings/sign-on":                 {roles: "oa"},
		"POST /settings/sign-on":                {roles: "oa"},
		"POST /settings/sign-on/remove":         {roles: "oa"},
		"POST /settings/sign-on/domains":        {roles: "oa"},
		"POST /settings/sign-on/domains/prove":  {roles: "oa"},
		"POST /settings/sign-on/domains/remove": {roles: "oa"},

		"GET /account/second-factor":                 {roles: "oamvb"},
		"POST /account/second-factor/start":          {roles: "oamvb"},
		"GET /account/second-factor/qr.svg":          {roles: "oamvb"},
		"POST /account/second-factor/confirm":        {roles: "oamvb"},
		"POST /account/second-factor/recovery-codes": {roles: "oamvb"},
		"POST /account/second-factor/remove":         {roles: "oamvb"},

		"POST /account/logins/:id/end": {roles: "oamvb", path: login},

		"POST /logout":                {roles: "oamvb", ends: true},
		"GET /overview":               {roles: "oamvb"},
		"GET /overview/first-request": {roles: "oamvb"},
		"GET /more":                   {roles: "oamvb"},

		"GET /invite/:secret": {}, "POST /invite/:secret/signup": {},

		"POST /invite/:secret":       {roles: "oamvb"}, // and nobody's role lets them in
		"GET /workspaces":            {roles: "oamvb"},
		"GET /workspaces/new":        {roles: "oamvb"},
		"POST /workspaces":           {roles: "oamvb"},
		"POST /workspaces/:id/enter": {roles: "oamvb", path: func(of *tenant) string { return "/workspaces/" + of.Workspace.ID.String() + "/enter" }},
		"GET /workspaces/rename":     {roles: "oa"},
		"POST /workspaces/rename":    {roles: "oa"},
		"GET /workspaces/leave":      {roles: "oamvb"},
		"POST /workspaces/leave":     {roles: "oamvb"},

		// For others there is no such page: TestOnlyOperatorsReachTheirPage.
		"GET /operator": {}, "GET /operator/workspaces/:id/suspend": {}, "POST /operator/workspaces/:id/suspend": {},
		"GET /operator/workspaces/:id/resume": {}, "POST /operator/workspaces/:id/resume": {},

		"GET /members":                         {roles: "oa"},
		"GET /members/invite":                  {roles: "oa"},
		"POST /members/invite":                 {roles: "oa"},
		"POST /members/invitations/:id/resend": {roles: "oa", path: invitation("resend")},
		"POST /members/invitations/:id/revoke": {roles: "oa", path: invitation("revoke")},
		"GET /members/:id/role":                {roles: "oa", path: member("role")},
		"POST /members/:id/role":               {roles: "oa", path: member("role")},
		"GET /members/:id/remove":              {roles: "oa", path: member("remove")},
		"POST /members/:id/remove":             {roles: "oa", path: member("remove")},

		"GET /keys":             {roles: "oamv"},
		"GET /keys/new":         {roles: "oam"},
		"POST /keys":            {roles: "oam"},
		"GET /keys/:id/edit":    {roles: "oam", path: keyAt("edit")},
		"POST /keys/:id/edit":   {roles: "oam", path: keyAt("edit")},
		"GET /keys/:id/rotate":  {roles: "oam", path: keyAt("rotate")},
		"POST /keys/:id/rotate": {roles: "oam", path: keyAt("rotate")},
		"GET /keys/:id/revoke":  {roles: "oam", path: key},
		"POST /keys/:id/revoke": {roles: "oam", path: key},

		"GET /providers":              {roles: "oamv"},
		"GET /providers/new":          {roles: "oa"},
		"POST /providers":             {roles: "oa"},
		"POST /providers/:id/test":    {roles: "oa", path: provider("test")},
		"GET /providers/:id/edit":     {roles: "oa", path: provider("edit")},
		"POST /providers/:id/edit":    {roles: "oa", path: provider("edit")},
		"GET /providers/:id/replace":  {roles: "oa", path: provider("replace")},
		"POST /providers/:id/replace": {roles: "oa", path: provider("replace")},
		"GET /providers/:id/remove":   {roles: "oa", path: provider("remove")},
		"POST /providers/:id/remove":  {roles: "oa", path: provider("remove")},

		"GET /audit":               {roles: "oa"},
		"GET /settings":            {roles: "oa"},
		"POST /settings":           {roles: "oa"},
		"POST /settings/retention": {roles: "oa"},
		"GET /settings/delete":     {roles: "o"},
		"POST /settings/delete":    {roles: "o"},

		"GET /billing":           {roles: "ob"},
		"POST /billing/checkout": {roles: "ob"},
		"POST /billing/portal":   {roles: "ob"},

		"GET /pipeline":         {roles: "oamv"},
		"POST /pipeline":        {roles: "oa"},
		"GET /sessions":         {roles: "oamv"},
		"GET /sessions/csv":     {roles: "oamv"},
		"GET /sessions/delete":  {roles: "oa"},
		"POST /sessions/delete": {roles: "oa"},
		"GET /sessions/:id":     {roles: "oamv", path: session},
	}
}

// tenant is a workspace with one of everything.
type tenant struct {
	*webtest.Person

	session, key, provider, login, viewer, invitation string
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
	logins, err := product.DB.Logins(t.Context(), owner.User.ID)
	if err != nil || len(logins) == 0 {
		t.Fatalf("%d logins, %v", len(logins), err)
	}
	owner.Post("/members/invite", "email", "pending-"+name+"@example.com", "role", "member")
	pending, err := product.DB.Invitations(t.Context(), owner.Workspace.ID)
	if err != nil || len(pending) != 1 {
		t.Fatalf("%d invitations, %v", len(pending), err)
	}
	return &tenant{
		Person: owner, login: logins[0].ID.String(), session: owner.Newest().ID.String(), key: keys[0].ID.String(), provider: providers[0].ID.String(),
		viewer: owner.Colleague(tenants.Viewer).User.ID.String(), invitation: pending[0].ID.String(),
	}
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
			if try.roles == "" || try.ends {
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
