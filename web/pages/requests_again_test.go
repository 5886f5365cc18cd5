package pages_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// own returns the person's API key with a name.
func own(t *testing.T, person *webtest.Person, name string) tenants.APIKey {
	t.Helper()
	keys, err := person.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		if keys[i].Name == name {
			return keys[i]
		}
	}
	t.Fatalf("no key is called %s", name)
	return tenants.APIKey{}
}

// exchanges returns what went through the proxy, the newest first.
func (b bundle) exchanges(t *testing.T) []tenants.Exchange {
	t.Helper()
	found, _, err := b.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.Workspace.ID, tenants.ExchangeFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Send again sends the archived history through the proxy with one's own key, as a request of
// its own in a session of its own, and shows both answers side by side.
func TestSendAgainShowsBothAnswersSideBySide(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ path, body string }{
		"messages":  {"/v1/messages", asked},
		"stream":    {"/v1/messages", strings.Replace(asked, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)},
		"chat":      {"/v1/chat/completions", `{"model":"gpt-5.5","messages":[{"role":"user","content":"a private question"}]}`},
		"responses": {"/v1/responses", `{"model":"gpt-5.5","store":false,"input":"a private question"}`},
		"tools": {"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[
			{"role":"user","content":"a private question"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"a private question","cache_control":{"type":"ephemeral"}}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := requestsSetup(t)
			_, answered := b.Exchange(b.secret, requestsWindow, of.path, of.body)
			first := answered.Get("X-Palimpsest-Request-Id")
			key := own(t, b.Person, "laptop")
			if text := b.Get("/requests/" + first).TestID("again"); !strings.Contains(text, "laptop") || !strings.Contains(text, "It costs about") {
				t.Errorf("the form says %q", text)
			}
			page := b.Post("/requests/"+first+"/again", "key", key.ID.String())
			if page.Status != http.StatusOK || !strings.HasPrefix(page.Path, "/requests/compare?a="+first) {
				t.Fatalf("status %d at %s: %s", page.Status, page.Path, page.TestID("again"))
			}
			found := b.exchanges(t)
			if len(found) != 2 || found[0].Answer.Status != http.StatusOK || found[0].SentAgain().String() != first || found[0].Request.APIKey != key.ID || found[0].Request.Session == found[1].Request.Session ||
				found[0].Request.Stream != found[1].Request.Stream || found[0].Request.Position != found[1].Request.Position || found[0].Tokens.Output == 0 {
				t.Fatalf("recorded %+v", found)
			}
			if answers := page.Find(`[data-testid="answered"]`); answers.Length() != 2 || strings.Contains(answers.Text(), "not in the archive") || answers.First().Text() == "" || answers.Last().Text() == "" {
				t.Errorf("answers: %q", answers.Text())
			}
			if sent, ok := b.double.Last(); !ok || strings.Contains(string(sent.Body), "cache_control") || !strings.Contains(string(sent.Body), "a private question") {
				t.Errorf("sent %s", sent.Body)
			}
			second := found[0].ID.String()
			if page := b.Get("/requests/" + first); !strings.Contains(page.TestID("later"), second[:8]) {
				t.Errorf("the first one's page: %q", page.TestID("later"))
			}
			if page := b.Get("/requests/" + second); !strings.Contains(page.TestID("first"), first[:8]) {
				t.Errorf("the second one's page: %q", page.TestID("first"))
			}
			noted, err := b.DB.Audit.Audit(t.Context(), b.Workspace.ID, tenants.AuditFilter{Action: string(tenants.RequestSentAgain)})
			if err != nil || len(noted) != 1 || noted[0].Target != first || noted[0].After["key"] != "laptop" {
				t.Errorf("noted %+v, %v", noted, err)
			}
		})
	}
}

// Nobody sends a request with a key that is not theirs, that ended, or that does not allow it,
// nor one that they may not read.
func TestSendAgainHoldsToTheRightsOfPersonAndKey(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	id, _ := b.ask(asked)
	path, key := "/requests/"+id+"/again", own(t, b.Person, "laptop")
	refused := func(name string, page webtest.Page, status int, says string) {
		t.Helper()
		if page.Status != status || !strings.Contains(page.Find("main").Text(), says) {
			t.Errorf("%s: status %d, %q", name, page.Status, page.TestID("again"))
		}
		if found := b.exchanges(t); len(found) != 1 {
			t.Fatalf("%s: %d requests were sent", name, len(found))
		}
	}
	admin := b.Colleague(tenants.Admin)
	if text := admin.Get("/requests/" + id).TestID("not-again"); !strings.Contains(text, "You have no API key") {
		t.Errorf("without a key: %q", text)
	}
	refused("another's key", admin.Post(path, "key", key.ID.String()), http.StatusUnprocessableEntity, "can't be used")
	refused("no key", b.Post(path), http.StatusUnprocessableEntity, "Choose one of your API keys")
	refused("a key of nobody", b.Post(path, "key", uuid.NewString()), http.StatusUnprocessableEntity, "Choose one of your API keys")
	member := blind(b.Person)
	member.Connect(b.double, "desk")
	refused("unread", member.Post(path, "key", own(t, member, "desk").ID.String()), http.StatusUnprocessableEntity, "if you may read its messages")
	refused("viewer", b.Colleague(tenants.Viewer).Post(path, "key", key.ID.String()), http.StatusNotFound, "")
	refused("billing", b.Colleague(tenants.Billing).Post(path, "key", key.ID.String()), http.StatusForbidden, "")
	stranger := b.SignUp(t, "elsewhere")
	refused("another workspace", stranger.Post(path, "key", key.ID.String()), http.StatusNotFound, "")
	if _, err := b.Database.Owner(t).Exec(t.Context(), "UPDATE api_keys SET expires_at = now() - interval '1 minute' WHERE id = $1", key.ID); err != nil {
		t.Fatal(err)
	}
	refused("expired", b.Post(path, "key", key.ID.String()), http.StatusUnprocessableEntity, "can't be used")
}

// The form offers the person's own keys that can send requests now, and no others.
func TestSendAgainOffersTheKeysThatCanSend(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	id, _ := b.ask(asked)
	create := func(name string, by *webtest.Person, scope tenants.Scope) tenants.APIKey {
		t.Helper()
		key, _, err := b.Credentials(true).CreateAPIKey(t.Context(), b.Workspace.ID, tenants.APIKey{Name: name, Scopes: []tenants.Scope{scope}, CreatedBy: by.User.ID})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	create("desk", b.Person, tenants.ScopeProxy)
	create("reads", b.Person, tenants.ScopeRead)
	create("a colleague's", b.Colleague(tenants.Admin), tenants.ScopeProxy)
	for name, end := range map[string]string{"revoked": "revoked_at", "expired": "expires_at"} {
		key := create(name, b.Person, tenants.ScopeProxy)
		if _, err := b.Database.Owner(t).Exec(t.Context(), "UPDATE api_keys SET "+end+" = now() - interval '1 minute' WHERE id = $1", key.ID); err != nil {
			t.Fatal(err)
		}
	}
	var offered []string
	for _, option := range b.Get("/requests/" + id).Find(`#again-key option`).EachIter() {
		offered = append(offered, option.Text())
	}
	if slices.Sort(offered); strings.Join(offered, ", ") != "desk, laptop" {
		t.Errorf("offered: %q", offered)
	}
}

// A request is asked again of another model and with another treatment of its prompt, at a cost that is stated.
func TestAskAgainOfAnotherModelAndPipeline(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	id, _ := b.ask(asked)
	key := own(t, b.Person, "laptop").ID.String()
	page := b.Get("/requests/" + id)
	for _, option := range page.Find(`[data-testid="again"] select[name="model"] option`).EachIter() {
		if text := option.Text(); !strings.Contains(text, ", about $") || strings.Contains(text, "gpt-") {
			t.Errorf("offered is %q", text)
		}
	}
	shown := b.Post("/requests/"+id+"/again", "key", key, "model", "claude-haiku-4-5", "pipeline", "none")
	found := b.exchanges(t)
	if len(found) != 2 || found[0].Request.Model != "claude-haiku-4-5" || found[1].Request.Model != "claude-sonnet-4-5" || strings.Contains(string(found[0].Prompt.Report), `"ipc"`) {
		t.Fatalf("recorded %+v", found)
	}
	if figures := shown.TestID("differences"); !strings.Contains(figures, "claude-haiku-4-5") {
		t.Errorf("figures: %q", figures)
	}
	if text := shown.TestID("prompts"); !strings.Contains(text, "Both have the same 1 message, byte for byte.") {
		t.Errorf("prompts: %q", text)
	}
	noted, err := b.DB.Audit.Audit(t.Context(), b.Workspace.ID, tenants.AuditFilter{Action: string(tenants.RequestSentAgain)})
	if err != nil || len(noted) != 1 || noted[0].After["model"] != "claude-haiku-4-5" {
		t.Errorf("noted %+v, %v", noted, err)
	}
	for name, typed := range map[string][]string{"model": {"model", "gpt-5.5"}, "pipeline": {"pipeline", "all"}} {
		page := b.Post("/requests/"+id+"/again", append(typed, "key", key)...)
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("again"), "Nothing was sent") {
			t.Errorf("%s: status %d, %q", name, page.Status, page.TestID("again"))
		}
	}
	if len(b.exchanges(t)) != 2 {
		t.Error("a wrong choice was sent")
	}
}

// What the key's limits do not allow is refused by the proxy as any client's request is.
func TestSendAgainHoldsToTheLimitsOfTheKey(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	id, _ := b.ask(asked)
	key := own(t, b.Person, "laptop")
	key.Limits.Models = []string{"claude-opus-4-5"}
	if err := b.Credentials(true).ChangeAPIKey(t.Context(), b.Workspace.ID, key); err != nil {
		t.Fatal(err)
	}
	b.Keys.Changed(b.Workspace.ID.String())
	page := b.Post("/requests/"+id+"/again", "key", key.ID.String())
	found := b.exchanges(t)
	if len(found) != 2 || found[0].Answer.ErrorFrom != "proxy" || found[0].Answer.Status != http.StatusForbidden {
		t.Fatalf("recorded %+v", found)
	}
	if !strings.Contains(page.TestID("fault"), "The proxy refused this request") {
		t.Errorf("it says %q", page.TestID("fault"))
	}
}

// A request whose messages are not in the archive is not sent.
func TestSendAgainNeedsTheArchivedMessages(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	unkept, _ := b.ask(asked, "X-Palimpsest-No-Store", "true")
	id, _ := b.ask(strings.Replace(asked, `"messages":[`, `"messages":[{"role":"user","content":"first"},{"role":"assistant","content":"yes"},`, 1))
	if _, err := b.Database.Owner(t).Exec(t.Context(), "DELETE FROM archive_entries WHERE index = 0"); err != nil {
		t.Fatal(err)
	}
	key := own(t, b.Person, "laptop").ID.String()
	for id, says := range map[string]string{unkept: "aren't in the archive", id: "not all of its messages are in the archive"} {
		page := b.Post("/requests/"+id+"/again", "key", key)
		if text := page.Find("main").Text(); page.Status != http.StatusUnprocessableEntity || !strings.Contains(text, says) {
			t.Errorf("status %d, %q", page.Status, page.TestID("again"))
		}
	}
	if found := b.exchanges(t); len(found) != 2 {
		t.Errorf("%d requests were sent", len(found))
	}
}

// Two requests are compared by their ids, or by choosing among those of a session.
func TestRequestsAreComparedSideBySide(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	first, _ := b.ask(asked)
	second, _ := b.ask(strings.Replace(asked, "private", "public", 1))
	page := b.Get("/requests/compare?a=" + first + "&b=" + second)
	if text := page.TestID("compared"); page.Status != http.StatusOK || !strings.Contains(text, "a private question") || !strings.Contains(text, "a public question") {
		t.Errorf("status %d, %q", page.Status, text)
	}
	if figures := page.TestID("differences"); !strings.Contains(figures, "claude-sonnet-4-5") || !strings.Contains(figures, "Cost") {
		t.Errorf("figures: %q", figures)
	}
	prompts := page.Find(`[data-testid="prompts"]`)
	if gone, added := prompts.Find("del").Text(), prompts.Find("ins").Text(); !strings.Contains(gone, "a private question") || !strings.Contains(added, "a public question") {
		t.Errorf("prompts: %q", prompts.Text())
	}
	for query, status := range map[string]int{"a=" + first: 200, "a=" + first + "&b=" + first: 422, "a=" + first + "&b=x": 422, "a=" + first + "&b=" + uuid.NewString(): 422, "a=x": 404, "": 404} {
		if page := b.Get("/requests/compare?" + query); page.Status != status || page.Has(`[data-testid="differences"]`) {
			t.Errorf("%q: status %d, want %d", query, page.Status, status)
		}
	}
	elsewhere := b.SignUp(t, "elsewhere")
	if page := elsewhere.Get("/requests/compare?a=" + first + "&b=" + second); page.Status != http.StatusNotFound {
		t.Errorf("another workspace: status %d", page.Status)
	}
}
