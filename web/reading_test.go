package web_test

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// text is a page that shows what was said, at one or several paths: :id stands for a session,
// :request for a request of it.
type text struct {
	paths []string

	speaks bool // it shows the ids of end users, too
}

// texts has an entry for each page that shows what was said. No other may show any of it.
func texts() map[string]text {
	return map[string]text{
		"GET /sessions":              {paths: []string{"/sessions?show=conversations", "/sessions?q=question", "/sessions?group=client&show=conversations"}, speaks: true},
		"GET /sessions/csv":          {paths: []string{"/sessions/csv"}, speaks: true},
		"GET /sessions/delete":       {paths: []string{"/sessions/delete?id=:id"}},
		"GET /sessions/erase":        {paths: []string{"/sessions/erase?end_user=:user"}, speaks: true},
		"GET /sessions/export":       {paths: []string{"/sessions/export?show=conversations"}},
		"GET /sessions/:id":          {paths: []string{"/sessions/:id", "/sessions/:id?view=raw", "/sessions/:id?q=question", "/sessions/:id?table=1"}, speaks: true},
		"GET /sessions/:id/continue": {paths: []string{"/sessions/:id/continue"}},
		"GET /sessions/:id/compact":  {paths: []string{"/sessions/:id/compact"}},
		"GET /sessions/:id/delete":   {paths: []string{"/sessions/:id/delete"}},
		"GET /sessions/:id/find":     {paths: []string{"/sessions/:id/find", "/sessions/:id/find?q=question"}},
		"GET /sessions/compare":      {paths: []string{"/sessions/compare?a=:id", "/sessions/compare?a=:id&b=:id"}},
		"GET /jump":                  {paths: []string{"/jump", "/jump?q=question", "/jump?in=archive&q=question"}},
		"GET /requests":              {paths: []string{"/requests?open=:request"}, speaks: true},
		"GET /requests/:id":          {paths: []string{"/requests/:request"}, speaks: true},
		"GET /requests/compare":      {paths: []string{"/requests/compare?a=:request"}},
	}
}

// The words of a tenant's session that a page may hold: of a message and of its title, of a
// comment, and of an end user.
func (of *tenant) said() string     { return "question from " + of.name }
func (of *tenant) remarked() string { return "Remark on " + of.name + "." }
func (of *tenant) speaker() string  { return "speaker-" + of.name }

// speak has a person of the workspace say something with a key of their own.
func (of *tenant) speak(t *testing.T, person *webtest.Person, name string) {
	t.Helper()
	key, secret, err := of.Credentials(true).CreateAPIKey(t.Context(), of.Workspace.ID, tenants.APIKey{
		Name: name, Scopes: []tenants.Scope{tenants.ScopeProxy}, CreatedBy: person.User.ID,
	})
	if err != nil {
		t.Fatal(err)
	}
	of.name = name
	of.showEndUsers(t, tenants.TextPolicy{Managers: tenants.ReadsAll, Members: tenants.ReadsOwn, Viewers: tenants.ReadsNone})
	of.TalkOnce(secret, window, "/v1/messages", `{"metadata":{"user_id":"`+of.speaker()+`"},"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"a `+of.said()+`"},
		{"role":"assistant","content":"an answer"},{"role":"user","content":"another `+of.said()+`"}]}`, claudeCode)
	exchanges, _, err := of.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), of.Workspace.ID, tenants.ExchangeFilter{APIKey: key.ID})
	if err != nil || len(exchanges) != 1 {
		t.Fatalf("%d exchanges, %v", len(exchanges), err)
	}
	of.session, of.request = exchanges[0].Request.Session.String(), exchanges[0].ID.String()
	remark := tenants.Comment{Session: exchanges[0].Request.Session, Author: person.User.ID, Text: of.remarked()}
	if _, err := of.DB.Comments.AddComment(t.Context(), of.Workspace.ID, remark); err != nil {
		t.Fatal(err)
	}
	if _, err := of.Index.IndexPending(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
}

// showEndUsers has the workspace show its end users by their own ids, and lets roles read.
func (of *tenant) showEndUsers(t *testing.T, policy tenants.TextPolicy) {
	t.Helper()
	settings := tenants.DataSettings{TimeZone: "UTC", Text: policy, EndUsers: tenants.EndUsersPlain}
	if err := of.DB.Data.SetDataSettings(t.Context(), of.Workspace.ID, settings); err != nil {
		t.Fatal(err)
	}
}

// holds reports whether a page holds words, also where a search marks some of them.
func holds(page webtest.Page, words string) bool {
	return strings.Contains(page.HTML, words) || strings.Contains(page.Text("body"), words)
}

// S44: every reader by every page under several policies: what was said is shown to those who
// may read it, by the one rule. A page that is not listed shows none of it to anyone.
func TestEveryPageShowsTextToThoseWhoMayReadIt(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owners := newTenant(t, product, "ant")
	member, former := owners.Colleague(tenants.Regular), owners.Colleague(tenants.Regular)
	members := *owners
	owners.speak(t, owners.Person, "owl")
	members.speak(t, member, "bee")
	readers := map[tenants.Role]*webtest.Person{tenants.Owner: owners.Person, tenants.Regular: member, "": former}
	for _, role := range []tenants.Role{tenants.Admin, tenants.Viewer, tenants.Billing} {
		readers[role] = owners.Colleague(role)
	}
	if page := owners.Post("/members/"+former.User.ID.String()+"/remove", "confirm", former.Email); page.Status != http.StatusOK {
		t.Fatalf("remove: status %d", page.Status)
	}
	checkOtherPages(t, product, readers, owners, &members)

	cells := 0
	for _, policy := range []tenants.TextPolicy{
		{Managers: tenants.ReadsAll, Members: tenants.ReadsOwn, Viewers: tenants.ReadsNone},
		{Managers: tenants.ReadsOwn, Members: tenants.ReadsOwn, Viewers: tenants.ReadsAll},
		{Managers: tenants.ReadsOwn, Members: tenants.ReadsAll, Viewers: tenants.ReadsNone},
	} {
		owners.showEndUsers(t, policy)
		for role, person := range readers {
			reads := map[tenants.Role]tenants.Reads{
				tenants.Owner: policy.Managers, tenants.Admin: policy.Managers, tenants.Regular: policy.Members, tenants.Viewer: policy.Viewers,
			}[role]
			for name, page := range texts() {
				for _, of := range []*tenant{owners, &members} {
					isOwn := of == owners && role == tenants.Owner || of == &members && role == tenants.Regular
					may := reads == tenants.ReadsAll || reads == tenants.ReadsOwn && isOwn
					may = may && strings.Contains(reaches()[name].roles, string(cmp.Or(role, "-"))[:1])
					for _, path := range page.paths {
						cells++
						checkPage(t, person, role, of, page, strings.NewReplacer(":id", of.session, ":request", of.request, ":user", session.EndUserID(of.Workspace.ID, of.speaker())).Replace(path), may)
					}
				}
			}
		}
	}
	t.Logf("%d cells", cells)
	if cells < 800 {
		t.Errorf("only %d cells", cells)
	}
}

// checkPage opens a page and wants the words of a session in it, or none of them.
func checkPage(t *testing.T, person *webtest.Person, role tenants.Role, of *tenant, page text, path string, may bool) {
	t.Helper()
	shown := person.Get(path)
	said := of.said()
	if holds(shown, said) != may {
		t.Errorf("%s as %q: status %d, shows %q: %t", path, role, shown.Status, said, !may)
	}
	for _, words := range []string{of.remarked(), of.speaker()} {
		if !may && holds(shown, words) {
			t.Errorf("%s as %q shows %q", path, role, words)
		}
	}
	if page.speaks && may && !holds(shown, of.speaker()) {
		t.Errorf("%s as %q does not show %q", path, role, of.speaker())
	}
}

// checkOtherPages opens the pages that are not listed as someone who may read everything, and
// has those who may not do what they can: nothing that was said is in any answer.
func checkOtherPages(t *testing.T, product *webtest.Product, readers map[tenants.Role]*webtest.Person, owners, members *tenant) {
	t.Helper()
	listed, known := texts(), map[string]bool{}
	for _, route := range product.Routes {
		name := route.Method + " " + route.Path
		known[name] = true
		try := reaches()[name]
		if _, is := listed[name]; is || try.ends || try.streams || !slices.Contains([]string{http.MethodGet, http.MethodPost}, route.Method) {
			continue
		}
		who := map[tenants.Role]*tenant{tenants.Owner: owners, tenants.Viewer: owners, tenants.Regular: owners, tenants.Billing: members}
		for role, of := range who {
			mayRead := role == tenants.Owner
			if mayRead == (route.Method == http.MethodPost) || endsWell(route) && !mayRead {
				continue
			}
			page := through(readers[role], route, try, of)
			for _, words := range []string{of.said(), of.remarked(), of.speaker()} {
				if holds(page, words) {
					t.Errorf("%s as %s shows %q: add an entry", name, role, words)
				}
			}
		}
	}
	for name := range listed {
		if !known[name] {
			t.Errorf("%s: no such page", name)
		}
	}
}

// endsWell reports whether what a person does there ends their login or membership.
func endsWell(route *echo.Route) bool {
	return strings.HasPrefix(route.Path, "/account") || strings.HasPrefix(route.Path, "/workspaces") || strings.HasPrefix(route.Path, "/log") ||
		strings.HasPrefix(route.Path, "/signup") || strings.HasPrefix(route.Path, "/invite")
}
