package web_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/wiregen"
	"palimpsest/web/webtest"
)

const (
	window     = 60_000 // tokens: small, so that a short session is compressed
	claudeCode = "claude-cli/2.1.0 (external, cli)"
)

// longTalk returns a session that goes past the window several times.
func longTalk() *wiregen.Session {
	return wiregen.Generate(7, wiregen.Options{
		Format: conversation.Anthropic, Turns: 60, TargetTokens: 110_000, Parallel: true, CJK: true,
		SessionID: "6f0c6f6e-52d0-4f0e-9d3c-0f3d3a7f2b11",
	})
}

// shortTalk returns a session that no epoch touches.
func shortTalk() *wiregen.Session {
	return wiregen.Generate(11, wiregen.Options{Format: conversation.OpenAIResponses, Turns: 6, SessionID: "short"})
}

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

	person.Talk(secret, window, longTalk(), claudeCode)

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
	for _, level := range []string{".lv.l1", ".lv.l0"} {
		if !opened.Has(`[data-testid="turns"] ` + level) {
			t.Errorf("no turn is at %s", level)
		}
	}
	if !opened.Has(`[data-testid="original"] pre, [data-testid="original"] .text`) || !opened.Has(`[data-testid="pane"] .s-sent pre`) {
		t.Error("the page does not show the original beside what was sent")
	}
}

// longID returns the id of the session with most requests.
func longID(t *testing.T, person *webtest.Person) string {
	t.Helper()
	page, err := person.Sessions.Sessions(t.Context(), person.Workspace.ID, session.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	longest := page.Sessions[0]
	for _, overview := range page.Sessions {
		if overview.Exchanges > longest.Exchanges {
			longest = overview
		}
	}
	return longest.ID.String()
}
