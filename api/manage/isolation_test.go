package manage_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// reach says how one workspace tries to reach another through a route.
type reach struct {
	// path is the route with ids of the workspace it is called for; nil for a
	// route without ids, whose answer may hold nothing of another workspace.
	path func(of *tenant) string
	body string

	person   bool   // serves no API key
	public   bool   // serves people who are not logged in
	people   bool   // API keys have nothing to do there
	ends     bool   // the login that the test works with
	runs     bool   // for operators: TestOnlyOperatorsOperate
	managers bool   // is not for API keys that only read
	reads    bool   // changes nothing, though it is no GET
	own      bool   // says itself whose workspace it is about: a test of its own calls it
	status   int    // of the owner's own call; 0: 200
	rows     int    // that it writes into the audit log; 0: one
	roles    string // that may: initials of owner, admin, member, viewer, billing
}

// reaches has an entry for every route.
func reaches() map[string]reach {
	at := func(format func(*tenant) string) func(*tenant) string { return format }
	return map[string]reach{
		"POST /signup":      {public: true},
		"POST /login":       {public: true},
		"POST /logout":      {public: true},
		"GET /openapi.yaml": {public: true},

		"POST /login/device": {public: true}, "POST /login/token": {public: true},

		"POST /account/reset":                {public: true},
		"POST /account/reset/confirm":        {public: true},
		"POST /account/verification":         {public: true},
		"POST /account/verification/confirm": {public: true},

		"PUT /account/password": {roles: "oamvb", people: true, status: http.StatusUnprocessableEntity,
			body: `{"current_password":"not the password","password":"correct horse battery"}`}, // the right one would end the others' logins
		"PUT /account/email":         {roles: "oamvb", people: true, body: `{"email":"other@example.com","password":"correct horse battery"}`, status: http.StatusAccepted},
		"GET /account/logins":        {roles: "oamvb", people: true},
		"DELETE /account/logins":     {roles: "oamvb", people: true, ends: true},
		"DELETE /account/logins/:id": {roles: "oamvb", people: true, path: at(func(of *tenant) string { return "/account/logins/" + of.login }), status: http.StatusNoContent},

		"GET /me":                    {roles: "oamvb"},
		"GET /workspaces":            {roles: "oamvb"},
		"POST /workspaces":           {roles: "oamvb", person: true, body: `{"name":"another"}`, status: http.StatusCreated},
		"POST /workspaces/:id/enter": {roles: "oamvb", person: true, path: at(func(of *tenant) string { return "/workspaces/" + of.workspace.String() + "/enter" }), status: http.StatusNoContent},
		"PATCH /workspaces/:id":      {roles: "oa", path: at(func(of *tenant) string { return "/workspaces/" + of.workspace.String() }), body: `{"name":"another"}`, status: http.StatusNoContent},
		"POST /workspaces/:id/leave": {roles: "oamvb", person: true, // its only owner cannot
			path: at(func(of *tenant) string { return "/workspaces/" + of.workspace.String() + "/leave" }), status: http.StatusConflict,
		},

		"GET /operator/workspaces": {runs: true}, "POST /operator/workspaces/:id/suspend": {runs: true}, "POST /operator/workspaces/:id/resume": {runs: true},

		"GET /members":        {roles: "oa"},
		"POST /members":       {roles: "oa", body: `{"email":"grace@example.com","role":"member"}`, status: http.StatusCreated},
		"PATCH /members/:id":  {roles: "oa", path: at(func(of *tenant) string { return "/members/" + of.viewer }), body: `{"role":"admin"}`, status: http.StatusNoContent},
		"DELETE /members/:id": {roles: "oa", path: at(func(of *tenant) string { return "/members/" + of.viewer }), status: http.StatusNoContent},

		"GET /invitations":             {roles: "oa"},
		"POST /invitations":            {roles: "oa", body: `{"email":"hedy@example.com","role":"viewer"}`, status: http.StatusCreated},
		"POST /invitations/accept":     {roles: "oamvb", person: true, body: `{"token":"none"}`, status: http.StatusNotFound},
		"POST /invitations/:id/resend": {roles: "oa", path: at(func(of *tenant) string { return "/invitations/" + of.invitation + "/resend" })},
		"DELETE /invitations/:id":      {roles: "oa", path: at(func(of *tenant) string { return "/invitations/" + of.invitation }), status: http.StatusNoContent},

		"GET /keys":              {roles: "oamv"},
		"POST /keys":             {roles: "oam", body: `{"name":"another","scopes":["read"]}`, status: http.StatusCreated},
		"GET /provider-keys":     {roles: "oamv"},
		"POST /provider-keys":    {roles: "oa", body: `{"provider":"openai","key":"sk-another-key"}`, status: http.StatusCreated},
		"GET /pipeline":          {roles: "oamv"},
		"PUT /pipeline":          {roles: "oa", body: `{"ipc":{"preserveLastTurns":7}}`},
		"GET /pipeline/versions": {roles: "oamv"},
		"POST /pipeline/versions/:version/restore": {roles: "oa", // every workspace counts its own from 1
			path: at(func(*tenant) string { return "/pipeline/versions/1/restore" }), own: true},
		"POST /pipeline/preview": {roles: "oamv", reads: true, body: `{"pipeline":{"ipc":{"preserveLastTurns":7}}}`},
		"GET /sessions":          {roles: "oamv"},
		"GET /models/windows":    {roles: "oamv"},
		"GET /budgets":           {roles: "oamv"},
		"GET /models/prices":     {roles: "oamv"},
		"GET /models/limits":     {roles: "oamv"},

		"GET /patterns":        {roles: "oamv"},
		"POST /patterns":       {roles: "oa", body: `{"kind":"directive","text":"Never push to the release branch without a tag."}`, status: http.StatusCreated},
		"GET /patterns/:id":    {roles: "oamv", path: at(func(of *tenant) string { return "/patterns/" + of.pattern })},
		"PATCH /patterns/:id":  {roles: "oa", path: at(func(of *tenant) string { return "/patterns/" + of.pattern }), body: `{"status":"disabled"}`},
		"DELETE /patterns/:id": {roles: "oa", path: at(func(of *tenant) string { return "/patterns/" + of.pattern }), status: http.StatusNoContent},

		"PUT /models/prices":            {roles: "oa", body: `{"prices":[]}`, status: http.StatusNoContent},
		"PUT /models/limits":            {roles: "oa", body: `{"limits":[]}`, status: http.StatusNoContent},
		"PUT /budgets":                  {roles: "oa", body: `{"budgets":[]}`, status: http.StatusNoContent},
		"PUT /models/windows/:model":    {roles: "oa", body: `{"window_tokens":50000}`},
		"DELETE /models/windows/:model": {roles: "oa", path: at((*tenant).modelWindow), status: http.StatusNoContent},

		"GET /settings":          {roles: "oamv"},
		"PUT /settings":          {roles: "oa", body: `{"time_zone":"Europe/Berlin"}`},
		"GET /redaction":         {roles: "oamv"},
		"GET /alerts":            {roles: "oa"},
		"PUT /alerts":            {roles: "oa", body: `{"quiet_from":"22:00","quiet_to":"07:00"}`},
		"GET /alerts/deliveries": {roles: "oa"},

		"GET /sign-on":        {roles: "o", people: true},
		"PUT /sign-on":        {roles: "o", people: true, body: `{"issuer":"` + issuer + `","client_id":"c","secret":"s","role":"member"}`},
		"DELETE /sign-on":     {roles: "o", people: true, own: true},
		"GET /config/export":  {roles: "oamv"},
		"POST /config/import": {roles: "oa", body: `{"palimpsest":1,"settings":{"retention_days":77}}`, rows: 2}, // the retention, and the import
		"GET /audit":          {roles: "oa", managers: true},
		"GET /audit.csv":      {roles: "oa", managers: true},
		"GET /export":         {roles: "oa", managers: true},
		"DELETE /workspace":   {roles: "o", own: true},

		"POST /sign-on/domains":               {roles: "o", people: true, body: `{"domain":"another.example"}`, status: http.StatusCreated},
		"POST /sign-on/domains/:domain/prove": {roles: "o", people: true, path: at(func(of *tenant) string { return "/sign-on/domains/" + of.domain() + "/prove" })},
		"DELETE /sign-on/domains/:domain":     {roles: "o", people: true, path: at(func(of *tenant) string { return "/sign-on/domains/" + of.domain() }), status: http.StatusNoContent},

		"GET /search":              {roles: "oam", path: at(func(of *tenant) string { return "/search?q=question&session=" + of.session.String() })},
		"GET /sessions/export":     {roles: "oam", path: at(func(of *tenant) string { return "/sessions/export?id=" + of.session.String() })},
		"GET /sessions/:id/export": {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/export" })},
		"GET /retention":           {roles: "oamv"},
		"PUT /retention":           {roles: "oa", body: `{"days":30}`},

		// Billing is off here.
		"POST /billing/checkout": {roles: "ob", people: true, body: `{"plan":"pro"}`, status: http.StatusNotFound},
		"POST /billing/portal":   {roles: "ob", people: true, status: http.StatusNotFound},
		"POST /billing/webhook":  {public: true},

		"GET /usage":    {roles: "oamvb"},
		"GET /requests": {roles: "oamvb"}, "GET /requests.csv": {roles: "oamvb"},

		"POST /provider-keys/:id/test": {roles: "oa", path: at(func(of *tenant) string { return "/provider-keys/" + of.providerKey + "/test" })},
		"GET /sessions/:id":            {roles: "oamv", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() })},
		"GET /sessions/:id/turns":      {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/turns" })},
		"GET /sessions/:id/events":     {roles: "oamv", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/events" })},
		"GET /sessions/:id/archive/:index": {roles: "oam", path: at(func(of *tenant) string {
			return "/sessions/" + of.session.String() + "/archive/0"
		})},
		"POST /sessions/:id/compact": {roles: "oam",
			path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/compact" }), body: `{"instructions":"Keep it."}`,
			status: http.StatusAccepted,
		},
		"PUT /sessions/:id/pin":    {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/pin" }), status: http.StatusNoContent},
		"DELETE /sessions/:id/pin": {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/pin" }), status: http.StatusNoContent},
		"GET /sessions/:id/pins":   {roles: "oamv", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/pins" })},
		"POST /sessions/:id/pins":  {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/pins" }), body: `{"message":1}`},
		"DELETE /sessions/:id/pins/:message": {roles: "oam",
			path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/pins/1" }), status: http.StatusNoContent,
		},
		"PUT /sessions/:id/star":     {roles: "oamv", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/star" }), status: http.StatusNoContent},
		"DELETE /sessions/:id/star":  {roles: "oamv", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/star" }), status: http.StatusNoContent},
		"GET /sessions/:id/comments": {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/comments" })},
		"POST /sessions/:id/comments": {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/comments" }), body: `{"text":"Well done."}`,
			status: http.StatusCreated},
		"GET /sessions/:id/scores":           {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/scores" })},
		"PUT /sessions/:id/score":            {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/score" }), body: `{"score":1}`},
		"DELETE /sessions/:id/score":         {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/score" }), status: http.StatusNoContent},
		"PUT /sessions/:id/labels/:label":    {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/labels/good" }), status: http.StatusNoContent},
		"DELETE /sessions/:id/labels/:label": {roles: "oam", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/labels/kept" }), status: http.StatusNoContent},
		"DELETE /sessions/:id/comments/:comment": {roles: "oam",
			path: at(func(of *tenant) string { return "/sessions/" + of.session.String() + "/comments/" + of.comment }), status: http.StatusNoContent},
		"GET /requests/:id":         {roles: "oamvb", path: at(func(of *tenant) string { return "/requests/" + of.request.String() })},
		"DELETE /users/:id":         {roles: "oa"}, // every workspace has ids of its own
		"DELETE /sessions/:id":      {roles: "oa", path: at(func(of *tenant) string { return "/sessions/" + of.session.String() }), status: http.StatusNoContent},
		"DELETE /provider-keys/:id": {roles: "oa", path: at(func(of *tenant) string { return "/provider-keys/" + of.providerKey }), status: http.StatusNoContent},
		"PATCH /provider-keys/:id":  {roles: "oa", path: at(func(of *tenant) string { return "/provider-keys/" + of.providerKey }), body: `{"order":3}`},
		"POST /provider-keys/:id/replace": {roles: "oa", path: at(func(of *tenant) string { return "/provider-keys/" + of.providerKey + "/replace" }),
			body: `{"key":"sk-another-key"}`},
		"PATCH /keys/:id":       {roles: "oam", path: at(func(of *tenant) string { return "/keys/" + of.keyID }), body: `{"concurrency":7}`},
		"POST /keys/:id/rotate": {roles: "oam", path: at(func(of *tenant) string { return "/keys/" + of.keyID + "/rotate" }), body: `{"grace":"1h"}`},
		"DELETE /keys/self":     {own: true}, // ends the key that it is sent with
		"DELETE /keys/:id":      {roles: "oam", path: at(func(of *tenant) string { return "/keys/" + of.keyID }), status: http.StatusNoContent},
	}
}

// S3
func TestNoRouteReachesAnotherWorkspace(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "zebra")
	before := p.db.Rows(t, b.workspace)
	reaches := reaches()
	for _, route := range routes(p.echo) {
		try, listed := reaches[route]
		if !listed {
			t.Errorf("%s: this test does not say how another workspace might reach through it", route)
			continue
		}
		delete(reaches, route)
		if !try.public && !try.ends && !try.own && !try.runs {
			method, path, _ := strings.Cut(route, " ")
			tryRoute(t, a, b, method, path, try)
		}
	}
	for route := range reaches {
		t.Errorf("%s: no such route", route)
	}
	if after := p.db.Rows(t, b.workspace); after != before {
		t.Errorf("the other workspace has changed:\n%s\nwas:\n%s", after, before)
	}
	ownCalls(t, b)
}

// S3: every role may what its name says, through every route, and nothing else.
func TestRolesAreCheckedOnEveryRoute(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing} {
		member := a.colleague(t, role)
		reaches := reaches()
		for _, route := range routes(p.echo) {
			try := reaches[route]
			if try.public || try.ends || try.runs {
				continue
			}
			method, path, _ := strings.Cut(route, " ")
			// Nothing has this id and the body is empty: anyone who may gets another error.
			path = strings.NewReplacer(":id", uuid.NewString(), ":domain", "none.example", ":index", "0", ":model", "x", ":message", "0").Replace(path)
			answer := member.send(t, method, path, "")
			if may := strings.Contains(try.roles, string(role)[:1]); may == (answer.status == http.StatusForbidden) {
				t.Errorf("%s as %s: status %d: %s", answer.request, role, answer.status, answer.body)
			}
		}
	}
}

// tryRoute calls a route for b's things as a, in every way in which a can.
func tryRoute(t *testing.T, a, b *tenant, method, path string, try reach) {
	t.Helper()
	foreign := http.StatusNotFound
	if try.path != nil {
		path = try.path(b)
	} else {
		foreign = max(try.status, http.StatusOK)
	}
	byReader, byKey := foreign, foreign
	if method != http.MethodGet && !try.reads || try.managers || try.roles == "oa" {
		byReader = http.StatusForbidden
	}
	if try.person || try.people {
		byKey, byReader = http.StatusForbidden, http.StatusForbidden
	}
	for name, call := range map[string]struct {
		answer reply
		status int
	}{
		"cookie":     {a.send(t, method, path, try.body), foreign},
		"key":        {a.sendWith(t, a.manage, method, path, try.body), byKey},
		"read key":   {a.sendWith(t, a.read, method, path, try.body), byReader},
		"no login":   {a.sendWith(t, "", method, path, try.body), http.StatusUnauthorized},
		"no key":     {a.sendWith(t, "plm_wrong", method, path, try.body), http.StatusUnauthorized},
		"key's head": {a.sendWith(t, b.manage[:12], method, path, try.body), http.StatusUnauthorized},
	} {
		if call.answer.status != call.status {
			t.Errorf("%s with %s: status %d, want %d: %s", call.answer.request, name, call.answer.status, call.status, call.answer.body)
		}
		for _, secret := range []string{b.workspace.String(), b.session.String(), b.request.String(), b.keyID, b.providerKey, b.pattern, b.viewer, b.invitation, "zebra", canaryKey} {
			if strings.Contains(string(call.answer.body), secret) {
				t.Errorf("%s with %s: the answer holds %s", call.answer.request, name, secret)
			}
		}
	}
}

// ownCalls proves that what no one else reached is there for its owner.
func ownCalls(t *testing.T, b *tenant) {
	t.Helper()
	reaches := reaches()
	order := routes(b.echo)
	slices.SortStableFunc(order, func(x, y string) int { return deletes(x) - deletes(y) })
	for _, route := range order {
		try := reaches[route]
		if try.public || try.ends || try.own || try.runs {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		if try.path != nil {
			path = try.path(b)
		}
		if answer := b.send(t, method, path, try.body); answer.status != max(try.status, http.StatusOK) {
			t.Errorf("%s by its owner: status %d: %s", answer.request, answer.status, answer.body)
		}
	}
}

// deletes returns how much a route deletes: what belongs to something goes before it.
func deletes(route string) int {
	if !strings.HasPrefix(route, "DELETE") {
		return 0
	}
	return 100 - strings.Count(route, "/")
}

// routes returns the API's routes as "METHOD /path" below its prefix.
func routes(e *echo.Echo) []string {
	var list []string
	for _, route := range e.Routes() {
		path, below := strings.CutPrefix(route.Path, prefix)
		if below && route.Method != echo.RouteNotFound {
			list = append(list, route.Method+" "+path)
		}
	}
	slices.Sort(list)
	return list
}
