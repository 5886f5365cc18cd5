package manage_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// subject is a caller of the API, and what they may do there.
type subject struct {
	name   string
	as     *tenant // whose cookie is sent; without a key
	key    string  // secret of an API key; without a cookie
	may    func(method string, try reach) bool
	status int                           // of what they may not do; 0: 403
	grants func(tenants.Permission) bool // what a key that they make may do; nil: they make none
}

// call sends a body without a look at openapi.yaml, which describes nothing hostile.
func (s subject) call(t *testing.T, method, path, body string) reply {
	t.Helper()
	request := s.as.build(t, method, path, body)
	if s.key != "" {
		request.Header.Set("Authorization", "Bearer "+s.key)
	} else if s.as.cookie != nil {
		request.AddCookie(s.as.cookie)
	}
	return exchange(t, request)
}

func never(string, reach) bool { return false }

// inRole returns what a person with a role may do.
func inRole(role tenants.Role) func(string, reach) bool {
	return func(_ string, try reach) bool { return strings.Contains(try.roles, string(role)[:1]) }
}

func byManageKey(_ string, try reach) bool {
	return strings.Contains(try.roles, "a") && !try.people && !try.person
}

func byReadKey(method string, try reach) bool {
	return byManageKey(method, try) && strings.Contains(try.roles, "m") && !try.managers && (method == http.MethodGet || try.reads)
}

func byRecallKey(method string, try reach) bool {
	return byReadKey(method, try) && try.roles == "oam"
}

// subjects returns everybody who calls the API of a workspace. Those who have lost their
// rights had them when they logged in and made their keys.
func subjects(t *testing.T, a, other *tenant) (all, powerful []subject) {
	t.Helper()
	admin, member, viewer := a.colleague(t, tenants.Admin), a.colleague(t, tenants.Regular), a.colleague(t, tenants.Viewer)
	demoted, former, left := a.colleague(t, tenants.Admin), a.colleague(t, tenants.Admin), a.colleague(t, tenants.Admin)
	key := func(of *tenant, scope string) string {
		_, secret := of.createKey(t, scope)
		return secret
	}
	demotedKey, formerKey, proxy, recall := key(demoted, "manage"), key(former, "manage"), key(a, "proxy"), key(a, "recall")
	var kept struct{ Secret string }
	made := left.send(t, http.MethodPost, "/keys", `{"name":"kept","scopes":["proxy","manage"]}`)
	made.want(t, http.StatusCreated)
	made.decode(t, &kept)
	a.changeRole(t, demoted, tenants.Viewer)
	a.send(t, http.MethodDelete, "/members/"+former.userID(t), "").want(t, http.StatusNoContent)
	a.send(t, http.MethodDelete, "/members/"+left.userID(t)+"?keys=keep", "").want(t, http.StatusNoContent)
	a.forget(a.workspace)
	nobody := &tenant{product: a.product}
	all = []subject{
		{name: "anonymous", as: nobody, may: never, status: http.StatusUnauthorized},
		{name: "former member", as: former, may: never, status: http.StatusUnauthorized},
		{name: "key of a former member", as: nobody, key: formerKey, may: never, status: http.StatusUnauthorized},
		{name: "kept key of a former member", as: nobody, key: kept.Secret, may: never},
		{name: "key of a demoted admin", as: nobody, key: demotedKey, may: never},
		{name: "proxy key", as: nobody, key: proxy, may: never},
		{name: "recall key", as: nobody, key: recall, may: byRecallKey},
		{name: "read key", as: nobody, key: a.read, may: byReadKey},
		{name: "viewer", as: viewer, may: inRole(tenants.Viewer)},
		{name: "demoted admin", as: demoted, may: inRole(tenants.Viewer)},
		{name: "member", as: member, may: inRole(tenants.Regular), grants: tenants.Regular.May},
		{name: "manage key", as: nobody, key: a.manage, may: byManageKey, grants: tenants.Admin.May},
		{name: "admin", as: admin, may: inRole(tenants.Admin), grants: tenants.Admin.May},
	}
	powerful = []subject{
		{name: "owner", as: a, may: inRole(tenants.Owner), grants: tenants.Owner.May},
		{name: "key of another workspace", as: nobody, key: other.manage},
		{name: "owner of another workspace, an operator", as: other},
	}
	return all, powerful
}

// power is who may do what in an installation.
func (p *product) power(t *testing.T) string {
	t.Helper()
	var state string
	const question = `SELECT concat_ws(E'\n',
		(SELECT string_agg(concat_ws(' ', 'member', workspace_id, user_id, role), E'\n' ORDER BY workspace_id, user_id) FROM members),
		(SELECT string_agg(concat_ws(' ', 'operator', user_id), E'\n' ORDER BY user_id) FROM operators),
		(SELECT string_agg(concat_ws(' ', 'user', id, email, password_hash), E'\n' ORDER BY id) FROM users),
		(SELECT string_agg(concat_ws(' ', 'sign-on', workspace_id, issuer, client_id), E'\n' ORDER BY workspace_id) FROM sign_ons),
		(SELECT string_agg(concat_ws(' ', 'domain', workspace_id, domain, token, proven_at), E'\n' ORDER BY workspace_id, domain) FROM sign_on_domains))`
	if err := p.db.Owner(t).QueryRow(t.Context(), question).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// S3, S34: every route, every caller, valid and hostile bodies. What a caller may not do is
// refused, whatever the body says, and leaves nothing behind.
func TestNoCallerDoesMoreThanTheyMayWhateverTheySend(t *testing.T) {
	t.Parallel()
	p := setup(t)
	other, a := p.tenant(t, "zebra"), p.tenant(t, "ant") // the first person operates
	all, powerful := subjects(t, a, other)
	for _, who := range all {
		before, power := p.db.Rows(t, a.workspace), p.power(t)
		each(t, a, func(method, path string, try reach, body string) {
			if who.may(method, try) {
				return
			}
			answer := who.call(t, method, path, body)
			want := cmp.Or(who.status, http.StatusForbidden)
			if try.runs && who.status == 0 {
				want = http.StatusNotFound
			}
			if answer.status != want {
				t.Errorf("%s as %s with %s: status %d, want %d: %s", answer.request, who.name, body, answer.status, want, answer.body)
			}
		})
		if after := p.db.Rows(t, a.workspace); after != before {
			t.Errorf("%s has changed what they may not:\n%s", who.name, difference(before, after))
		}
		if after := p.power(t); after != power {
			t.Errorf("%s has gained power:\n%s", who.name, difference(power, after))
		}
	}
	for _, who := range append(all, powerful...) {
		tryAllowed(t, a, other, who)
	}
}

// tryAllowed has a caller do all that they may with hostile bodies: they gain no power by
// it, and no other workspace changes.
func tryAllowed(t *testing.T, a, other *tenant, who subject) {
	t.Helper()
	target, untouched := a, other
	if who.may == nil { // a caller of the other workspace, with the ids of this one
		untouched = a
		who.may = func(_ string, try reach) bool { return !try.runs }
	}
	before, power := a.db.Rows(t, untouched.workspace), a.power(t)
	known := a.scopesOf(t)
	each(t, target, func(method, path string, try reach, body string) {
		if !who.may(method, try) || strings.HasPrefix(path, "/account") || path == "/workspaces" || strings.HasSuffix(path, "/leave") {
			return
		}
		// People and sign-on are changed by those who may: tests of their own say how.
		if who.name != "member" && untouched == other && (strings.HasPrefix(path, "/members/") || strings.HasPrefix(path, "/sign-on")) {
			return
		}
		if answer := who.call(t, method, path, body); answer.status >= http.StatusInternalServerError {
			t.Errorf("%s as %s with %s: status %d: %s", answer.request, who.name, body, answer.status, answer.body)
		}
	})
	if after := a.db.Rows(t, untouched.workspace); after != before {
		t.Errorf("%s has changed another workspace:\n%s", who.name, difference(before, after))
	}
	if after := a.power(t); after != power && untouched == other {
		t.Errorf("%s has gained power:\n%s", who.name, difference(power, after))
	}
	for id, scopes := range a.scopesOf(t) {
		granted, err := tenants.ParseScopes(scopes)
		if _, was := known[id]; !was && (err != nil || who.grants == nil || !tenants.MayGrant(who.grants, granted)) {
			t.Errorf("%s has made a key with %s, %v", who.name, scopes, err)
		}
	}
}

// each calls try for every route of openapi.yaml with the ids of a workspace and each of
// the bodies of the operation.
func each(t *testing.T, of *tenant, call func(method, path string, try reach, body string)) {
	t.Helper()
	d, err := theDescription()
	if err != nil {
		t.Fatal(err)
	}
	reaches, order := reaches(), routes(of.echo)
	slices.SortStableFunc(order, func(x, y string) int { return deletes(x) - deletes(y) })
	for _, route := range order {
		try := reaches[route]
		if try.public || try.ends || try.own {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		if try.path != nil {
			path = try.path(of)
		}
		path = strings.NewReplacer(":id", of.workspace.String(), ":model", "x", ":domain", of.domain()).Replace(path)
		one, known := d.find(method, path[:len(path)-len(query(path))])
		if !known {
			t.Fatalf("%s is not described", route)
		}
		bodies := []string{""}
		if method != http.MethodGet {
			bodies = bodiesOf(t, one, try.body)
		}
		for _, body := range bodies {
			call(method, path, try, body)
		}
	}
}

// query returns a path's query with its question mark.
func query(path string) string {
	if at := strings.IndexByte(path, '?'); at >= 0 {
		return path[at:]
	}
	return ""
}

// difference returns the lines of two texts that the other one has not.
func difference(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var lines []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return fmt.Sprintf("%.4000s", strings.Join(lines, "\n"))
}
