package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// speakFor sends a request on behalf of an end user.
func speakFor(t *testing.T, person *webtest.Person, secret, user, text string) {
	t.Helper()
	status, _ := person.Exchange(secret, 200_000, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"`+text+`"},
		{"role":"assistant","content":"an answer"},{"role":"user","content":"and more"}]}`, "X-Palimpsest-User", user)
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
}

// S52: people see the end users of an application as their workspace has chosen, list the sessions of one, and erase one.
func TestEndUsersAreShownFilteredAndErased(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, 200_000), "shop")
	shown := func(of webtest.Page) string {
		return strings.Join(strings.Fields(of.Text(`[data-testid="end-user"]`)), " ")
	}
	speakFor(t, person, secret, "alice@shop", "a question of alice")
	alice := session.EndUserID(person.Workspace.ID, "alice@shop")

	if page := person.Get("/sessions"); shown(page) != "end user "+alice[:8] || strings.Contains(page.HTML, "alice@shop") {
		t.Errorf("hashed: %q", shown(page))
	}
	saved := person.Post("/settings", "time_zone", "UTC", "managers_read", "all", "members_read", "own", "viewers_read", "none", "end_users", "plain")
	if saved.Path != "/settings?saved=yes" || saved.Find(`select[name="end_users"] option[selected]`).AttrOr("value", "") != "plain" {
		t.Errorf("settings: %d %s", saved.Status, saved.Path)
	}
	if wrong := person.Post("/settings", "time_zone", "UTC", "managers_read", "all", "members_read", "own", "viewers_read", "none", "end_users", "both"); wrong.Status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong choice: status %d", wrong.Status)
	}
	speakFor(t, person, secret, "alice@shop", "another question of alice")
	speakFor(t, person, secret, "bob@shop", "a question of bob")

	for path, want := range map[string]string{"/sessions": "bob@shop alice@shop alice@shop", "/requests": "bob@shop alice@shop alice@shop"} {
		if got := shown(person.Get(path)); got != want {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
		of := person.Get(path + "?end_user=alice%40shop")
		if of.Path != path+"?end_user="+alice || shown(of) != "alice@shop alice@shop" || !strings.Contains(of.Text(".chip"), "end user:alice@shop") {
			t.Errorf("alice's: %s shows %q with %q", of.Path, shown(of), of.Text(".chip"))
		}
		if none := shown(person.Get(path + "?end_user=carol")); none != "" {
			t.Errorf("%s of nobody shows %q", path, none)
		}
	}
	list := person.Get("/sessions?end_user=" + alice)
	if one := person.Get(list.Find("a.ttl").AttrOr("href", "")); shown(one) != "alice@shop" {
		t.Errorf("a session shows %q", shown(one))
	}
	if csv := person.Get("/sessions/csv?end_user=alice%40shop").HTML; strings.Count(csv, alice+",alice@shop") != 2 || strings.Contains(csv, "bob") {
		t.Errorf("the file: %s", csv)
	}

	asked := person.Get(list.Find(`[data-testid="erase-user"]`).AttrOr("href", ""))
	if words := asked.Text("#dlg-erase"); !strings.Contains(words, "Erase the end user alice@shop") || !strings.Contains(words, "Type “erase "+alice[:8]+"”") {
		t.Errorf("the question: %s", words)
	}
	if refused := person.Post("/sessions/erase", "end_user", alice, "confirm", "erase"); refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Text("#dlg-erase"), "Nothing is erased yet") {
		t.Errorf("other words: status %d, %q", refused.Status, refused.Text("#dlg-erase"))
	}
	done := person.Post("/sessions/erase", "end_user", alice, "confirm", "erase "+alice[:8])
	if done.Text(`[data-testid="erased"]`) != "Erased the end user with 2 sessions. Their cost stays in the figures." || shown(done) != "bob@shop" {
		t.Errorf("%s says %q and shows %q", done.Path, done.Text(`[data-testid="erased"]`), shown(done))
	}
	if left := person.Get("/requests"); shown(left) != "bob@shop" || strings.Contains(left.HTML, "alice") || strings.Contains(left.HTML, alice) {
		t.Errorf("requests show %q", shown(left))
	}
	entries, err := person.DB.Audit.Audit(t.Context(), person.Workspace.ID, tenants.AuditFilter{Limit: 5})
	if err != nil || len(entries) == 0 || entries[0].Action != tenants.EndUserErased || entries[0].Target != alice || entries[0].After["sessions"] != "2" {
		t.Errorf("noted is %+v, %v", entries, err)
	}
	if log := person.Get("/audit"); !strings.Contains(log.Text("body"), "erased the end user") || strings.Contains(log.HTML, "alice") {
		t.Error("the audit log does not say so, or names alice")
	}
}
