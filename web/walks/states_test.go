package walks_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// A page that cannot be shown whole looks right too: to who may look only or not at all,
// where nothing is left of what was asked for, and where a part or all of it fails.
func TestPagesThatCannotBeShownWholeLookRight(t *testing.T) {
	fulltest.Only(t, "it looks at fourteen more states of pages, which takes 20 s of CPU")
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	owner.TalkOnce(owner.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the webhook answer 409?"}]}`, claudeCode)
	owner.Learn("We use pnpm here, not npm.")
	session := "/sessions/" + owner.Newest().ID.String()
	browser := browsertest.Start(t)
	open := func(person *webtest.Person) *browsertest.Tab {
		return browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	}
	look := func(tab *browsertest.Tab, status int, name, path, shown string) {
		tab.Expect(status)
		tab.Go(path)
		tab.See(shown)
		tab.CheckLooks(name)
	}

	viewer := open(owner.Colleague(tenants.Viewer))
	for _, path := range []string{"/keys", "/providers", "/patterns", "/pipeline"} {
		look(viewer, http.StatusOK, "viewer "+strings.Trim(path[1:5], "/"), path, ".callout")
	}
	look(viewer, http.StatusForbidden, "no permission", "/members", `[data-testid="problem"]`)
	tab := open(owner)
	look(tab, http.StatusNotFound, "nothing there", "/sessions/"+webtest.Nobody(), `[data-testid="problem"]`)
	owner.Post(session+"/delete", "confirm", owner.Newest().ID.String()[:8])
	look(tab, http.StatusNotFound, "session deleted", session, `[data-testid="problem"]`)

	for _, broken := range []struct{ statement, path string }{
		{"ALTER TABLE sessions RENAME TO gone_sessions", "/sessions"}, {"ALTER VIEW rollups_now RENAME TO gone_rollups", "/keys"},
		{"ALTER FUNCTION operator_log RENAME TO gone", "/operator"},
	} {
		if _, err := product.Database.Owner(t).Exec(t.Context(), broken.statement); err != nil {
			t.Fatal(err)
		}
		look(tab, http.StatusOK, "failed "+broken.path[1:], broken.path, `[data-testid="failed"]`)
	}
	look(tab, http.StatusOK, "failed overview", "/overview", `[data-testid="failed"]`)
	tab.Until(`getComputedStyle(document.querySelector('.live .dot')).animationName === 'none'`) // it doesn't look up to date
	look(tab, http.StatusOK, "failed pipeline", "/pipeline", `[data-testid="preview-failed"]`)
	if _, err := product.Database.Owner(t).Exec(t.Context(), "ALTER TABLE patterns RENAME TO gone_patterns"); err != nil {
		t.Fatal(err)
	}
	look(tab, http.StatusInternalServerError, "failed whole", "/patterns", `[data-testid="problem"]`)
}
