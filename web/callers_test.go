package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// through sends what a route takes about a tenant, and returns the page that it leads to.
func through(caller *webtest.Person, route *echo.Route, try reach, of *tenant) webtest.Page {
	path := route.Path
	if try.path != nil {
		path = try.path(of)
	}
	switch {
	case try.streams:
		return caller.Open(path)
	case route.Method == http.MethodPost:
		return caller.Post(path, try.typed...)
	}
	return caller.Get(path)
}

// S3: every role may what its name says through every route, and nothing of
// another workspace. A route without an entry fails.
func TestRolesAndWorkspacesAreCheckedOnEveryRoute(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	ours, theirs := newTenant(t, product, "ant"), newTenant(t, product, "zebra")
	reaches := reaches()
	for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing} {
		colleague, ending := ours.Colleague(role), ours.Colleague(role)
		for _, route := range product.Routes {
			name := route.Method + " " + route.Path
			try, listed := reaches[name]
			if route.Method == echo.RouteNotFound {
				continue
			}
			if !listed {
				t.Errorf("%s: this test does not say who may go through it", name)
			}
			caller := colleague
			if try.ends {
				caller = product.LogIn(t, ending.Email)
			}
			page := through(caller, route, try, theirs)
			may := try.roles == "" || strings.Contains(try.roles, string(role)[:1])
			switch {
			case page.Status >= http.StatusInternalServerError:
				t.Errorf("%s as %s: status %d", name, role, page.Status)
			case try.operates != (try.operates && page.Status == http.StatusNotFound):
				t.Errorf("%s as %s, who operates nothing: status %d", name, role, page.Status)
			case try.roles != "" && may == (page.Status == http.StatusForbidden):
				t.Errorf("%s as %s: status %d", name, role, page.Status)
			case may && try.path != nil && page.Status != http.StatusNotFound:
				t.Errorf("%s as %s of another workspace: status %d", name, role, page.Status)
			case may && try.streams && page.Header.Get("Content-Type") != "text/event-stream":
				t.Errorf("%s as %s is no stream: %s", name, role, page.Path)
			case strings.Contains(page.HTML, "zebra"):
				t.Errorf("%s as %s shows something of another workspace", name, role)
			}
		}
	}
	// What no other caller reached is there for its owner.
	for name, try := range reaches {
		if method, _, _ := strings.Cut(name, " "); method == http.MethodGet && try.path != nil && !try.operates {
			if page := theirs.Get(try.path(theirs)); page.Status != http.StatusOK {
				t.Errorf("%s by its owner: status %d", name, page.Status)
			}
		}
	}
}

// outsider is a caller to whom a workspace is closed, and where every route of it leads them.
type outsider struct {
	name   string
	person *webtest.Person
	led    string // path begins so; "" if they are refused with 403
	may    func(try reach) bool
}

// outsiders returns everyone who may not go through some route of a tenant. All have logged
// in to it before, but for the stranger.
func outsiders(t *testing.T, of *tenant) []outsider {
	t.Helper()
	loggedOut, former := of.Colleague(tenants.Owner), of.Colleague(tenants.Owner)
	if kept := loggedOut.Kept(); kept.Post("/logout").Status != http.StatusOK {
		t.Fatal("the login did not end")
	}
	page := of.Post("/members/"+former.User.ID.String()+"/remove", "confirm", former.Email)
	if !strings.HasPrefix(page.Path, "/members?done") {
		t.Fatalf("the member was not removed: %s", page.Text("main"))
	}
	nowhere := of.Colleague(tenants.Owner)
	if _, err := of.Database.Owner(t).Exec(t.Context(), "DELETE FROM members WHERE user_id = $1", nowhere.User.ID); err != nil {
		t.Fatal(err)
	}
	of.People.Forget() // as the notification does
	nowhere.Post("/login", "email", nowhere.Email, "password", webtest.Password)
	mayNothing := func(try reach) bool { return try.roles == "" && !try.operates }
	all := []outsider{
		{"a stranger", of.Stranger(t), "/login", mayNothing},
		{"a person who logged out", loggedOut, "/login", mayNothing},
		{"a former member", former, "/login", mayNothing},
		{"a person in no workspace", nowhere, "/workspaces/new", func(try reach) bool { return mayNothing(try) || try.outside || try.operates }},
	}
	for _, role := range []tenants.Role{tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing} {
		all = append(all, outsider{string(role), of.Colleague(role), "", func(try reach) bool {
			return try.roles == "" || strings.Contains(try.roles, string(role)[:1])
		}})
	}
	return all
}

// S3, S34: what a caller may not do is refused, whatever the form says, and leaves the workspace
// as it was.
func TestCallersChangeNothingTheyMayNotWhateverTheySend(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "first") // operates the installation
	of := newTenant(t, product, "ant")
	of.Post("/pipeline/windows", "model", "ours-0", "window_tokens", "64000")
	forms := auditedForms(of, webtest.Provider(t, window).URL)
	callers := outsiders(t, of)
	before := product.Database.Rows(t, of.Workspace.ID)
	for _, caller := range callers {
		for _, route := range product.Routes {
			name := route.Method + " " + route.Path
			try := reaches()[name]
			if form := forms[name]; form.path != "" {
				try.typed, try.path = form.typed, func(*tenant) string { return form.path }
			}
			if caller.may(try) {
				if try.outside && !try.ends && caller.led == "/workspaces/new" && route.Path != caller.led {
					if page := through(caller.person, route, try, of); page.Path == caller.led {
						t.Errorf("%s is closed to %s", name, caller.name)
					}
				}
				continue
			}
			page := through(caller.person, route, try, of)
			if caller.led == "" && page.Status != http.StatusForbidden || caller.led != "" && !strings.HasPrefix(page.Path, caller.led) {
				t.Errorf("%s leads %s to %s with %d", name, caller.name, page.Path, page.Status)
			}
			if route.Method == http.MethodPost && strings.Contains(page.Path, "next=") {
				t.Errorf("%s leads %s back to an address without a page: %s", name, caller.name, page.Path)
			}
			if strings.Contains(page.HTML, "question from ant") || caller.led != "" && strings.Contains(page.HTML, "laptop") {
				t.Errorf("%s shows %s something of the workspace", name, caller.name)
			}
		}
		if after := product.Database.Rows(t, of.Workspace.ID); after != before {
			t.Fatalf("%s has changed the workspace:\n%s\nwas:\n%s", caller.name, after, before)
		}
	}
}

// No route leads into a suspended workspace, its owner included, but to leave it
// for another one.
func TestNoRouteLeadsIntoASuspendedWorkspace(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator, owner := newTenant(t, product, "ant"), newTenant(t, product, "zebra")
	leaving := owner.Colleague(tenants.Owner)
	page := operator.Post("/operator/workspaces/"+owner.Workspace.ID.String()+"/suspend", "reason", "sends spam", "confirm", "zebra")
	if page.Status != http.StatusOK {
		t.Fatalf("status %d: %s", page.Status, page.Text("main"))
	}
	product.People.Forget() // as the notification does
	for _, route := range product.Routes {
		name := route.Method + " " + route.Path
		try := reaches()[name]
		if try.roles == "" {
			continue
		}
		isOfPerson := slices.ContainsFunc([]string{"/account", "/invite", "/more", "/workspaces", "/logout", "/device"}, func(of string) bool { return strings.HasPrefix(route.Path, of) })
		isOfPerson = isOfPerson && route.Path != "/workspaces/rename"
		caller := owner.Person
		if try.ends || strings.HasSuffix(route.Path, "/end") || route.Path == "/workspaces/leave" || route.Path == "/account/delete" {
			caller = leaving.Kept()
			caller.Post("/login", "email", leaving.Email, "password", webtest.Password)
		}
		page := through(caller, route, try, owner)
		if name == "POST /workspaces/:id/enter" && page.Path == "/overview" {
			continue // which says why it is suspended
		}
		if refused := page.Status == http.StatusForbidden && strings.Contains(page.HTML, "sends spam"); refused == isOfPerson {
			t.Errorf("%s: status %d: %s", name, page.Status, page.Path)
		}
	}
}
