package web_test

import (
	"strings"
	"testing"

	"palimpsest/web/webtest"
)

const (
	window     = webtest.Window
	claudeCode = webtest.ClaudeCode
)

func TestAStrangerSetsUpAndReadsASession(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, window)
	person := product.SignUp(t, "northbeam")

	if steps := person.Get("/overview").Find(`[data-testid="steps"]`); steps.AttrOr("data-done", "") != "0" {
		t.Fatalf("a new workspace has %s steps behind it", steps.AttrOr("data-done", "?"))
	}
	added := person.Post("/providers", "provider", "anthropic", "name", "anthropic-prod", "key", webtest.ProviderKey, "base_url", double.URL)
	if added.Status != 200 || !strings.Contains(added.Text("main"), "anthropic-prod is stored") {
		t.Fatalf("adding a provider key: %d, %s", added.Status, added.Text("main"))
	}
	created := person.Post("/keys", "name", "laptop", "expiry", "")
	secret := created.TestID("secret")
	if created.Status != 201 || !strings.HasPrefix(secret, "plm_") || strings.Contains(created.Path, "plm_") {
		t.Fatalf("creating a key: %d at %s", created.Status, created.Path)
	}
	if steps := person.Get("/overview").Find(`[data-testid="steps"]`); steps.AttrOr("data-done", "") != "2" {
		t.Errorf("%s steps are done, want 2", steps.AttrOr("data-done", "?"))
	}

	person.Talk(secret, window, webtest.LongTalk(), claudeCode)

	overview := person.Get("/overview")
	if got := overview.TestID("requests"); got != "60" && got == "0" {
		t.Errorf("the overview counts %s requests", got)
	}
	list := person.Get("/sessions")
	link := list.Find(`[data-testid="sessions"] a.ttl`)
	if link.Length() != 1 {
		t.Fatalf("the list holds %d sessions", link.Length())
	}
	opened := person.Get(link.AttrOr("href", ""))
	for _, level := range []string{".lv.l2", ".lv.l0"} {
		if !opened.Has(`[data-testid="turns"] ` + level) {
			t.Errorf("no turn is at %s", level)
		}
	}
	if !opened.Has(`[data-testid="original"] pre, [data-testid="original"] .text`) || !opened.Has(`[data-testid="pane"] .s-sent pre`) {
		t.Error("the page does not show the original beside what was sent")
	}
}
