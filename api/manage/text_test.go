package manage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// textRoutes are the routes that answer what was said, or change what is sent of it.
func textRoutes(of *tenant) map[string]string {
	session := "/sessions/" + of.session.String()
	return map[string]string{
		"GET " + session + "/turns":                             "",
		"GET " + session + "/archive/0":                         "",
		"GET /sessions/export?id=" + of.session.String():        "",
		"GET " + session + "/export":                            "",
		"GET /search?q=question&session=" + of.session.String(): "",
	}
}

// setPolicy has a workspace say who may read.
func (w *tenant) setPolicy(t *testing.T, managers, members, viewers tenants.Reads) {
	t.Helper()
	body := fmt.Sprintf(`{"managers_read":%q,"members_read":%q,"viewers_read":%q}`, managers, members, viewers)
	w.send(t, http.MethodPut, "/settings", body).want(t, http.StatusOK)
}

// S44: every role under every policy, through every route that shows what was said.
func TestSessionTextIsReadableToThoseAllowed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	colleagues := map[tenants.Role]*tenant{}
	for _, role := range []tenants.Role{tenants.Admin, tenants.Regular, tenants.Viewer, tenants.Billing} {
		colleagues[role] = a.colleague(t, role)
	}
	for _, policy := range []struct {
		managers, members, viewers tenants.Reads
		mayRead                    []tenants.Role // the owner's session
	}{
		{tenants.ReadsAll, tenants.ReadsOwn, tenants.ReadsNone, []tenants.Role{tenants.Admin}},
		{tenants.ReadsOwn, tenants.ReadsOwn, tenants.ReadsNone, nil},
		{tenants.ReadsOwn, tenants.ReadsAll, tenants.ReadsNone, []tenants.Role{tenants.Regular}},
		{tenants.ReadsOwn, tenants.ReadsOwn, tenants.ReadsAll, []tenants.Role{tenants.Viewer}},
		{tenants.ReadsAll, tenants.ReadsAll, tenants.ReadsAll, []tenants.Role{tenants.Admin, tenants.Regular, tenants.Viewer}},
	} {
		a.setPolicy(t, policy.managers, policy.members, policy.viewers)
		for role, colleague := range colleagues {
			may := strings.Contains(fmt.Sprint(policy.mayRead), string(role))
			for route := range textRoutes(a) {
				method, path, _ := strings.Cut(route, " ")
				answer := colleague.send(t, method, path, "")
				want := http.StatusForbidden
				switch {
				case may:
					want = http.StatusOK
				case role == tenants.Regular: // for whom others' sessions are not there
					want = http.StatusNotFound
				}
				if answer.status != want {
					t.Errorf("%s as %s under %+v: status %d, want %d: %.200s", route, role, policy, answer.status, want, answer.body)
				}
			}
			if may || role == tenants.Admin {
				checkTitles(t, a, colleague, may)
			}
		}
		// Anyone who made the key reads its sessions, whatever the policy says of others'.
		for route := range textRoutes(a) {
			method, path, _ := strings.Cut(route, " ")
			a.send(t, method, path, "").want(t, http.StatusOK)
			a.sendWith(t, a.read, method, path, "").want(t, http.StatusOK)
		}
	}
}

// checkTitles: someone who sees a session sees its figures, and titles and what is found by them only if they may
// read it.
func checkTitles(t *testing.T, of, colleague *tenant, may bool) {
	t.Helper()
	for _, path := range []string{"/sessions", "/sessions/" + of.session.String()} {
		answer := colleague.send(t, http.MethodGet, path, "")
		answer.want(t, http.StatusOK)
		if shown := strings.Contains(string(answer.body), "Session of ant"); shown != may || !strings.Contains(string(answer.body), `"tokens_before":100`) {
			t.Errorf("%s, may read %v: %s", path, may, answer.body)
		}
	}
	var page struct{ Data []json.RawMessage }
	colleague.send(t, http.MethodGet, "/sessions?q=Session+of", "").decode(t, &page)
	if (len(page.Data) == 1) != may {
		t.Errorf("by its title %d sessions are found, may read %v", len(page.Data), may)
	}
}

func TestAMemberReadsTheSessionsOfTheirOwnKeys(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	member := a.colleague(t, tenants.Regular)
	member.keyID, member.read = member.createKey(t, "read")
	member.converse(t, "bee")
	for route := range textRoutes(member) {
		method, path, _ := strings.Cut(route, " ")
		member.send(t, method, path, "").want(t, http.StatusOK)
		member.sendWith(t, member.read, method, path, "").want(t, http.StatusOK)
	}
	for route := range textRoutes(a) {
		method, path, _ := strings.Cut(route, " ")
		member.send(t, method, path, "").want(t, http.StatusNotFound) // as if it was not there
		member.sendWith(t, member.read, method, path, "").want(t, http.StatusNotFound)
	}
	for _, caller := range []func() reply{
		func() reply { return member.send(t, http.MethodGet, "/search?q=question", "") },
		func() reply { return member.sendWith(t, member.read, http.MethodGet, "/search?q=question", "") },
	} {
		found := caller()
		found.want(t, http.StatusOK)
		if body := string(found.body); !strings.Contains(body, "of bee") || strings.Contains(body, "of ant") {
			t.Errorf("a search found %s", body)
		}
	}
	// One session that they may not read keeps back the whole file, wherever it stands in it.
	for _, ids := range []string{"id=" + member.session.String() + "&id=" + a.session.String(), "id=" + a.session.String() + "&id=" + member.session.String()} {
		for _, format := range []string{"ndjson", "markdown", "tar"} {
			member.send(t, http.MethodGet, "/sessions/export?"+ids+"&format="+format, "").want(t, http.StatusNotFound)
		}
	}
	// What the member may not read they may not change, either.
	member.send(t, http.MethodPost, a.path("/compact"), `{}`).want(t, http.StatusNotFound)
	member.send(t, http.MethodPost, a.path("/pins"), `{"message":0}`).want(t, http.StatusNotFound)
	// Their keys read no more than they do, and nothing once they have left.
	if _, err := p.db.Owner(t).Exec(t.Context(), "DELETE FROM members WHERE workspace_id = $1 AND role = 'member'", a.workspace); err != nil {
		t.Fatal(err)
	}
	member.sendWith(t, member.read, http.MethodGet, "/sessions/"+member.session.String()+"/turns", "").want(t, http.StatusForbidden)
}

func TestInvalidSettingsNameTheField(t *testing.T) {
	t.Parallel()
	a := setup(t).member(t, "ant")
	for field, body := range map[string]string{
		"time_zone":     `{"time_zone":"Mars/Olympus"}`,
		"members_read":  `{"members_read":"none"}`,
		"viewers_read":  `{"viewers_read":"own"}`,
		"managers_read": `{"managers_read":"nobody"}`,
		"redact":        `{"redact":["email","mail"]}`,
		"redact_names":  `{"redact_names":["Ada","7"]}`,
	} {
		answer := a.send(t, http.MethodPut, "/settings", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if answer.field(t) != field {
			t.Errorf("%s: the field is %s", body, answer.field(t))
		}
	}
	a.send(t, http.MethodPut, "/settings", `{"time_zone":"Asia/Kolkata","no_store":true,"redact":["phone","email","phone"],"redact_names":[" Ada  King ","Ada King"]}`).want(t, http.StatusOK)
	var saved struct {
		TimeZone    string `json:"time_zone"`
		MembersRead string `json:"members_read"`
		NoStore     bool   `json:"no_store"`

		Redact      []string `json:"redact"`
		RedactNames []string `json:"redact_names"`
	}
	a.send(t, http.MethodGet, "/settings", "").decode(t, &saved)
	if saved.TimeZone != "Asia/Kolkata" || saved.MembersRead != "own" || !saved.NoStore || !slices.Equal(saved.Redact, []string{"email", "phone"}) || !slices.Equal(saved.RedactNames, []string{"Ada King"}) {
		t.Errorf("saved %+v", saved)
	}
	a.send(t, http.MethodPut, "/settings", `{"redact":[],"redact_names":[]}`).want(t, http.StatusOK)
	if answer := a.send(t, http.MethodGet, "/settings", ""); !strings.Contains(string(answer.body), `"redact":[],"redact_names":[]`) {
		t.Errorf("turned off, it is %s", answer.body)
	}
}
