package manage_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// readAs is someone who wants to read.
type readAs struct {
	name string
	call func(t *testing.T, method, path, body string) reply
	may  func(tenants.Permission) bool // what they may do there now
	role tenants.Role                  // of who is asked for; "" if they are not a member
	keys []string                      // the API keys that this person has created

	recalls   string // secret of an API key with a scope for /mcp; "" for no such key
	mayRecall bool   // the scope is one that their role may have
}

// allow is what the workspace lets each role read.
type allow map[tenants.Role]tenants.Reads

// reads is the one rule: whether the reader may read a session of an API key.
func (r readAs) reads(policy allow, key string) bool {
	switch policy[r.role] {
	case tenants.ReadsAll:
		return true
	case tenants.ReadsOwn:
		return slices.Contains(r.keys, key)
	}
	return false
}

// text is a path to what was said: a route, and who gets which words of a session there.
type text struct {
	path  func(of *tenant) string
	body  string
	needs tenants.Permission
	says  func(of *tenant) []string // only those who may read the session get this
	all   bool                      // only who may read every session does
}

// texts has an entry for each route that answers what was said. Every other route must answer
// none of it to anybody.
func texts() map[string]text {
	at := func(format string) func(of *tenant) string {
		return func(of *tenant) string { return strings.ReplaceAll(format, ":id", of.session.String()) }
	}
	title := func(of *tenant) []string { return []string{of.title(), of.speaker()} }
	speaker := func(of *tenant) []string { return []string{of.speaker()} }
	said := func(of *tenant) []string { return []string{of.said()} }
	return map[string]text{
		"GET /sessions":                    {at("/sessions"), "", tenants.ReadSessions, title, false},
		"GET /sessions?q":                  {at("/sessions?q=Session+of"), "", tenants.ReadSessions, title, false},
		"GET /sessions/:id":                {at("/sessions/:id"), "", tenants.ReadSessions, title, false},
		"GET /sessions/:id/turns":          {at("/sessions/:id/turns"), "", tenants.ReadArchive, func(*tenant) []string { return []string{`"sha256"`} }, false},
		"GET /sessions/:id/archive/:index": {at("/sessions/:id/archive/0"), "", tenants.ReadArchive, said, false},
		"GET /sessions/:id/export":         {at("/sessions/:id/export"), "", tenants.ReadArchive, said, false},
		"GET /sessions/:id/export?tar":     {at("/sessions/:id/export?format=tar"), "", tenants.ReadArchive, said, false},
		"GET /sessions/:id/export?md":      {at("/sessions/:id/export?format=markdown"), "", tenants.ReadArchive, said, false},
		"GET /sessions/export":             {at("/sessions/export?id=:id"), "", tenants.ReadArchive, said, false},
		"GET /sessions/:id/export?jsonl":   {at("/sessions/:id/export?format=jsonl"), "", tenants.ReadArchive, func(of *tenant) []string { return []string{of.said(), of.remarked()} }, false},
		"GET /sessions/:id/scores":         {at("/sessions/:id/scores"), "", tenants.ReadSessions, func(of *tenant) []string { return []string{of.remarked()} }, false},
		"GET /sessions/:id/comments":       {at("/sessions/:id/comments"), "", tenants.ReadSessions, func(of *tenant) []string { return []string{of.remarked()} }, false},
		"GET /search":                      {at("/search?q=question"), "", tenants.ReadArchive, said, false},
		"GET /search?session":              {at("/search?q=question&session=:id"), "", tenants.ReadArchive, said, false},
		"GET /requests/:id": {func(of *tenant) string { return "/requests/" + of.request.String() }, "", tenants.ReadMetrics,
			func(of *tenant) []string { return []string{of.refusal(), of.speaker()} }, false},
		"GET /requests":     {at("/requests"), "", tenants.ReadMetrics, speaker, false},
		"GET /requests.csv": {at("/requests.csv"), "", tenants.ReadMetrics, speaker, false},
		"GET /export":       {at("/export"), "", tenants.ExportWorkspace, func(of *tenant) []string { return []string{of.said(), of.title(), of.remarked(), of.speaker()} }, true},
	}
}

// What is said in a tenant's session, in each of the places where words of it stand.
func (w *tenant) title() string    { return "Session of " + w.login }
func (w *tenant) said() string     { return "question 0 of " + w.login }
func (w *tenant) speaker() string  { return "user of " + w.login }
func (w *tenant) refusal() string  { return "refused: " + w.login }
func (w *tenant) remarked() string { return "remark on " + w.login }

// speak gives the tenant's key a session with words of its own in every place.
func (w *tenant) speak(t *testing.T, name string) {
	t.Helper()
	w.login = name
	w.converse(t, name)
	w.remark(t, fmt.Sprintf(`{"text":%q}`, w.remarked()))
	w.send(t, http.MethodPut, w.path("/score"), fmt.Sprintf(`{"score":1,"note":%q}`, w.remarked())).want(t, http.StatusOK)
	key, err := w.archiveKeys.Key(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	user := session.EndUserID(w.workspace, w.speaker())
	for statement, arguments := range map[string][]any{
		`UPDATE exchanges SET error_text = $2, end_user = $4 WHERE workspace_id = $1 AND id = $3`: {w.workspace, key.SealError(w.request, []byte(w.refusal())), w.request, user},
		`UPDATE sessions SET end_user = $2 WHERE workspace_id = $1 AND id = $3`:                   {w.workspace, user, w.session},
		`INSERT INTO end_users (workspace_id, id, name) VALUES ($1, $2, $3)`:                      {w.workspace, user, key.Seal([]byte("end user "+user), []byte(w.speaker()))},
	} {
		if _, err := w.db.Owner(t).Exec(t.Context(), statement, arguments...); err != nil {
			t.Fatal(err)
		}
	}
}

// readers returns everyone who reads in a workspace by every way that they have: logged in, and
// with a key of each scope. The owner and the member have a session each.
func readers(t *testing.T, owner *tenant) (all []readAs, member *tenant) {
	t.Helper()
	nobody := &tenant{product: owner.product}
	ofScope := map[string]func(tenants.Permission) bool{}
	for _, scope := range []tenants.Scope{tenants.ScopeProxy, tenants.ScopeRecall, tenants.ScopeRead, tenants.ScopeManage} {
		ofScope[string(scope)] = tenants.APIKey{Scopes: []tenants.Scope{scope}}.May
	}
	people := map[string]tenants.Role{"former member": "", "former member whose keys are kept": ""}
	for _, role := range []tenants.Role{tenants.Owner, tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing} {
		people[string(role)] = role
	}
	for name, role := range people {
		person := owner
		if name != string(tenants.Owner) {
			person = owner.colleague(t, tenants.Admin) // who may make every key
		}
		secrets := map[string]string{}
		var keys []string
		for scope := range ofScope {
			var id string
			id, secrets[scope] = person.createKey(t, scope)
			keys = append(keys, id)
			person.keyID = cmp.Or(person.keyID, id)
		}
		keys = append(keys, person.keyID)
		if role == tenants.Regular {
			member = person
			member.speak(t, "heron-of-the-member")
		}
		switch {
		case person == owner:
		case role == "":
			path := "/members/" + person.userID(t)
			if strings.Contains(name, "kept") {
				path += "?keys=keep"
			}
			owner.send(t, http.MethodDelete, path, "").want(t, http.StatusNoContent)
		default:
			owner.changeRole(t, person, role)
		}
		all = append(all, readAs{name + ", logged in", func(t *testing.T, method, path, body string) reply {
			return exchange(t, withCookie(person.build(t, method, path, body), person))
		}, role.May, role, keys, "", false})
		for scope, may := range ofScope {
			recalls := ""
			if slices.Contains([]string{"proxy", "recall"}, scope) {
				recalls = secrets[scope]
			}
			backed := len(tenants.APIKey{Scopes: []tenants.Scope{tenants.Scope(scope)}}.Backed(role)) > 0
			all = append(all, readAs{name + " with a key for " + scope, func(t *testing.T, method, path, body string) reply {
				request := nobody.build(t, method, path, body)
				request.Header.Set("Authorization", "Bearer "+secrets[scope])
				return exchange(t, request)
			}, func(permission tenants.Permission) bool { return backed && may(permission) }, role, keys, recalls, backed})
		}
	}
	owner.forget(owner.workspace)
	return all, member
}

func withCookie(request *http.Request, of *tenant) *http.Request {
	request.AddCookie(of.cookie)
	return request
}

// S44: every reader by every path to what was said, under several policies: each cell follows
// the one rule. No other route answers any of it, so a new path to text needs an entry.
func TestEveryPathToTextFollowsTheOneRule(t *testing.T) {
	t.Parallel()
	p := setup(t)
	operator, owner := p.member(t, "operator"), p.member(t, "ant")
	owner.keyID, _ = owner.createKey(t, "proxy")
	owner.speak(t, "heron-of-the-owner")
	all, member := readers(t, owner)
	listed, recall, cells := texts(), p.newRecall(t), 0
	checkEntries(t, p, listed)
	recall.checkEntries(t, owner)
	for _, policy := range []allow{
		{tenants.Owner: tenants.ReadsAll, tenants.Admin: tenants.ReadsAll, tenants.Regular: tenants.ReadsOwn, tenants.Viewer: tenants.ReadsNone},
		{tenants.Owner: tenants.ReadsOwn, tenants.Admin: tenants.ReadsOwn, tenants.Regular: tenants.ReadsOwn, tenants.Viewer: tenants.ReadsAll},
		{tenants.Owner: tenants.ReadsOwn, tenants.Admin: tenants.ReadsOwn, tenants.Regular: tenants.ReadsAll, tenants.Viewer: tenants.ReadsNone},
	} {
		text := tenants.TextPolicy{Managers: policy[tenants.Admin], Members: policy[tenants.Regular], Viewers: policy[tenants.Viewer]}
		if err := p.db.DB.Data.SetDataSettings(t.Context(), owner.workspace, tenants.DataSettings{TimeZone: "UTC", Text: text, EndUsers: tenants.EndUsersPlain}); err != nil {
			t.Fatal(err)
		}
		for _, who := range all {
			for _, of := range []*tenant{owner, member} {
				cells += recall.check(t, who, policy, of, map[*tenant]*tenant{owner: member, member: owner}[of])
			}
			for route, path := range listed {
				for _, of := range []*tenant{owner, member} {
					cells++
					may := who.may(path.needs) && who.reads(policy, of.keyID) && (!path.all || policy[who.role] == tenants.ReadsAll)
					method, _, _ := strings.Cut(route, " ")
					answer := who.call(t, method, path.path(of), path.body)
					for _, words := range path.says(of) {
						if strings.Contains(string(answer.body), words) != may {
							t.Errorf("%s as %s under %+v: status %d, may read %q: %t: %.300s", answer.request, who.name, text, answer.status, words, may, answer.body)
						}
					}
				}
			}
		}
	}
	checkOthers(t, p, all, listed, owner, member)

	below := "/operator/workspaces/" + owner.workspace.String()
	operator.send(t, http.MethodPost, below+"/suspend", `{"reason":"sends spam"}`).want(t, http.StatusOK)
	p.forget(owner.workspace)
	for _, who := range all {
		for route, path := range listed {
			cells++
			method, _, _ := strings.Cut(route, " ")
			if answer := who.call(t, method, path.path(owner), path.body); strings.Contains(string(answer.body), owner.login) || answer.status < http.StatusBadRequest {
				t.Errorf("%s as %s while the workspace is suspended: %d %.200s", answer.request, who.name, answer.status, answer.body)
			}
		}
	}
	t.Logf("%d cells", cells)
	if cells < 1000 {
		t.Errorf("only %d cells", cells)
	}
}

// checkEntries fails the test for an entry without a route.
func checkEntries(t *testing.T, p *product, listed map[string]text) {
	t.Helper()
	known := routes(p.echo)
	for route := range listed {
		if route, _, _ = strings.Cut(route, "?"); !slices.Contains(known, route) {
			t.Errorf("%s: no such route", route)
		}
	}
}

// checkOthers calls the routes that are not listed, and wants no words in what they answer to
// anyone: not even to those who may read.
func checkOthers(t *testing.T, p *product, all []readAs, listed map[string]text, owner, member *tenant) {
	t.Helper()
	for _, route := range routes(p.echo) {
		method, path, _ := strings.Cut(route, " ")
		try := reaches()[route]
		_, is := listed[route]
		if is || try.public || try.ends || method != http.MethodGet && !try.reads {
			continue
		}
		for _, of := range []*tenant{owner, member} {
			at := path
			if try.path != nil {
				at = try.path(of)
			}
			for _, who := range all {
				if answer := who.call(t, method, at, try.body); strings.Contains(string(answer.body), of.login) {
					t.Errorf("%s as %s answers what was said: add an entry: %.300s", answer.request, who.name, answer.body)
				}
			}
		}
	}
}
