package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// S14
func TestProviderKeyIsStoredAndNeverShownAgain(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	page := person.Post("/providers", "provider", "anthropic", "name", "anthropic-prod", "key", "sk-ant-canary-9876", "base_url", "")
	if page.Status != http.StatusOK || !strings.Contains(page.Text("main"), "anthropic-prod is stored") {
		t.Fatalf("status %d: %s", page.Status, page.Text("main"))
	}
	if !strings.Contains(page.Text(".callout"), "Next: create an API key.") {
		t.Errorf("nothing leads on: %q", page.Text(".callout"))
	}
	if row := page.TestID("providers"); !strings.Contains(row, "…9876") || !strings.Contains(row, "Anthropic") {
		t.Errorf("the list says %q", row)
	}
	if strings.Contains(page.HTML, "canary") || strings.Contains(page.Path, "canary") {
		t.Error("the page shows the key")
	}
}

func TestInvalidProviderKeyIsExplainedAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	for field, form := range map[string][]string{
		"provider": {"provider", "nobody", "name", "x", "key", "sk-ant-12345678", "base_url", ""},
		"name":     {"provider", "openai", "name", strings.Repeat("x", 101), "key", "sk-ant-12345678", "base_url", ""},
		"key":      {"provider", "openai", "name", "x", "key", "short", "base_url", ""},
		"base_url": {"provider", "openai", "name", "x", "key", "sk-ant-12345678", "base_url", "ftp://example.com"},
	} {
		page := person.Post("/providers", form...)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%s: status %d: %q", field, page.Status, page.Text("dialog"))
		}
		if strings.Contains(page.HTML, "sk-ant-12345678") {
			t.Errorf("%s: the form repeats the key", field)
		}
	}
}

// A key of Amazon Bedrock has a region and a kind of key, which stay what they are when it is edited.
func TestBedrockKeyAsksForRegionAndKindOfKey(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	if page := person.Get("/providers/new?preset=bedrock"); page.Find(`input[name="region"]`).Length() != 1 || page.Find(`select[name="auth"] option`).Length() != 2 || page.Find(`input[name="both"]`).Length() != 0 {
		t.Errorf("the form is %q", page.Text("dialog"))
	}
	form := []string{"provider", "bedrock", "name", "aws", "auth", "sigv4", "key", "AKIAIOSFODNN7EXAMPLE:canary-of-bedrock", "base_url", "https://bedrock-runtime.REGION.amazonaws.com"}
	if page := person.Post("/providers", append(form, "region", "nowhere")...); page.TestID("error-region") == "" || strings.Contains(page.HTML, "canary") {
		t.Errorf("no region: status %d: %q", page.Status, page.Text("dialog"))
	}
	page := person.Post("/providers", append(form, "region", "eu-central-1")...)
	if row := page.TestID("providers"); !strings.Contains(row, "https://bedrock-runtime.eu-central-1.amazonaws.com") || !strings.Contains(row, "Amazon Bedrock") || strings.Contains(page.HTML, "canary") {
		t.Fatalf("status %d: %q", page.Status, page.Text("main"))
	}
	edit := page.Find(`a[aria-label="Edit aws"]`).AttrOr("href", "")
	if page := person.Post(edit, "name", "aws", "enabled", "on", "auth", person.Get(edit).Find(`input[name="auth"]`).AttrOr("value", "")); page.Status != http.StatusOK || !strings.Contains(page.TestID("providers"), "aws") {
		t.Errorf("edit: status %d: %q", page.Status, page.Text("main"))
	}
}

// Each cloud asks for what its keys need, and an error stands at its field.
func TestCloudKeysAskForWhatTheyNeed(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	for preset, want := range map[string]struct{ regions, kinds int }{"google": {1, 1}, "claude-google": {1, 1}, "claude-aws": {1, 2}, "foundry": {0, 2}, "azure": {0, 3}, "openai": {0, 5}} {
		page := person.Get("/providers/new?preset=" + preset)
		if regions, kinds := page.Find(`input[name="region"]`).Length(), page.Find(`select[name="auth"] option`).Length(); regions != want.regions || kinds != want.kinds {
			t.Errorf("%s: %d regions, %d kinds of keys", preset, regions, kinds)
		}
	}
	form := []string{"provider", "google", "name", "gcp", "auth", "google", "key", `{"type": "external_account", "canary": "canary-of-google"}`, "region", "global"}
	if page := person.Post("/providers", form...); !strings.Contains(page.TestID("error-key"), "service_account") || strings.Contains(page.HTML, "canary-of") {
		t.Errorf("status %d: %q", page.Status, page.Text("dialog"))
	}
}

// S16
func TestPrivateBaseURLIsRefusedAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t, func(p *webtest.Product, deps *web.Deps) { deps.Gateway.ProviderKeys = p.Credentials(false) }).SignUp(t, "northbeam")

	for _, url := range []string{"http://127.0.0.1:11434", "https://192.168.0.4/v1", "http://localhost:8000"} {
		page := person.Post("/providers", "provider", "openai", "name", "local", "key", "sk-ant-12345678", "base_url", url)
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-base_url"), "private address") {
			t.Errorf("%s: status %d: %q", url, page.Status, page.Text("dialog"))
		}
		if typed := page.Find(`input[name="base_url"]`).AttrOr("value", ""); typed != url {
			t.Errorf("%s became %q", url, typed)
		}
	}
	if page := person.Post("/providers", "provider", "openai", "name", "", "key", "sk-ant-12345678", "base_url", "https://llm.example.com/v1"); !strings.Contains(page.TestID("providers"), "openai") {
		t.Errorf("a public one: %d, %s", page.Status, page.Text("main"))
	}
}

func TestTestingAKeySaysWhatTheProviderSays(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, 0)
	person := product.SignUp(t, "northbeam")
	add := func(name, key, url string) webtest.Page {
		t.Helper()
		page := person.Post("/providers", "provider", "anthropic", "name", name, "key", key, "base_url", url)
		link := page.Find(`form button[aria-label="Test now: `+name+`"]`).Parent().AttrOr("action", "")
		return person.Post(link)
	}

	if good := add("good", webtest.ProviderKey, double.URL); !strings.Contains(good.TestID("outcome"), "The key works") {
		t.Errorf("a good key: %d, %q", good.Status, good.TestID("outcome"))
	}
	if bad := add("bad", "sk-wrong-key-0000", double.URL); !strings.Contains(bad.TestID("outcome"), "401") {
		t.Errorf("a wrong key: %d, %q", bad.Status, bad.TestID("outcome"))
	}
	if gone := add("gone", webtest.ProviderKey, "http://127.0.0.1:1"); !strings.Contains(gone.TestID("outcome"), "could not be reached") {
		t.Errorf("a provider that is not there: %d, %q", gone.Status, gone.TestID("outcome"))
	}
}

func TestRemovingAsksFirst(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Post("/providers", "provider", "openai", "name", "prod", "key", "sk-12345678", "base_url", "")
	link := page.Find(`a[aria-label="Remove prod"]`).AttrOr("href", "")

	if asked := person.Get(link); !asked.Has("dialog[open]") || !asked.Has(`[data-testid="providers"]`) {
		t.Errorf("no question: %s", asked.Text("main"))
	}
	if wrong := person.Post(link, "name", "prd"); wrong.Status != http.StatusUnprocessableEntity || wrong.TestID("error-name") == "" {
		t.Errorf("another name: %d", wrong.Status)
	}
	if done := person.Post(link, "name", "prod"); !done.Has(`[data-testid="empty"]`) {
		t.Errorf("it is still there: %s", done.Text("main"))
	}
	if again := person.Post(link); again.Status != http.StatusNotFound {
		t.Errorf("removing it twice: %d", again.Status)
	}
}

func TestOnlyAdminsChangeProviderKeys(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.Post("/providers", "provider", "openai", "name", "prod", "key", "sk-12345678", "base_url", "")
	link := person.Get("/providers").Find(`a[aria-label="Remove prod"]`).AttrOr("href", "")

	member := person.As(tenants.Regular)
	if page := member.Get("/providers"); page.Has(`a[href="/providers/new"]`) || page.Has(`form[action$="/test"]`) || !strings.Contains(page.Text("main"), "view this page but not change it") {
		t.Error("a member sees controls that they may not use")
	}
	for _, page := range []webtest.Page{member.Post(link), member.Get("/providers/new"), member.Post("/providers", "provider", "openai", "name", "x", "key", "sk-12345678")} {
		if page.Status != http.StatusForbidden {
			t.Errorf("%s answers %d", page.Path, page.Status)
		}
	}
}

// S3
func TestProviderKeysOfAnotherWorkspaceAreNotThere(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	theirs, mine := product.SignUp(t, "theirs"), product.SignUp(t, "mine")
	page := theirs.Post("/providers", "provider", "openai", "name", "prod", "key", "sk-12345678", "base_url", "")
	link := page.Find(`a[aria-label="Remove prod"]`).AttrOr("href", "")

	for _, page := range []webtest.Page{mine.Get(link), mine.Post(link), mine.Post(strings.TrimSuffix(link, "remove") + "test")} {
		if page.Status != http.StatusNotFound {
			t.Errorf("status %d", page.Status)
		}
	}
	if !strings.Contains(theirs.Get("/providers").TestID("providers"), "prod") {
		t.Error("their key is gone")
	}
}

func TestPresetsFillTheFormIn(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t, func(p *webtest.Product, deps *web.Deps) { deps.Gateway.ProviderKeys = p.Credentials(false) })
	person := product.SignUp(t, "northbeam")

	page := person.Get("/providers/new?preset=groq")
	if url := page.Find(`input[name="base_url"]`).AttrOr("value", ""); url != "https://api.groq.com/openai/v1" {
		t.Errorf("base URL %q", url)
	}
	if page.Has(`a[href="/providers/new?preset=ollama"]`) || !page.Has(`a[href="/providers/new?preset=azure"]`) {
		t.Error("the presets are not those that are allowed")
	}
	page = person.Post("/providers", "provider", "azure", "name", "", "key", "azure-0123456789", "base_url", "https://RESOURCE.openai.azure.com/openai/v1")
	if !strings.Contains(page.TestID("error-base_url"), "RESOURCE") {
		t.Errorf("an invalid resource: %q", page.Text("dialog"))
	}
	page = person.Post("/providers", "provider", "groq", "name", "", "key", "gsk_0123456789", "base_url", "", "models", "llama-*\r\n\r\ngpt-oss-20b", "headers", "X-Title: Northbeam", "order", "2")
	if row := page.TestID("providers"); !strings.Contains(row, "Groq") || !strings.Contains(row, "llama-*, gpt-oss-20b") || !strings.Contains(row, "api.groq.com") || !strings.Contains(row, "not tested yet") {
		t.Errorf("the list says %q", row)
	}
}

func TestEditingKeepsTheKeyAndSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Post("/providers", "provider", "openai", "name", "prod", "key", "sk-canary-1234", "base_url", "")
	link := page.Find(`a[aria-label="Edit prod"]`).AttrOr("href", "")

	for field, form := range map[string][]string{
		"order": {"order", "many"}, "models": {"models", "two words"}, "headers": {"headers", "no colon"}, "name": {"name", strings.Repeat("x", 101)},
	} {
		if page := person.Post(link, form...); page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%s: status %d: %q", field, page.Status, page.Text("dialog"))
		}
	}
	if page := person.Post(link, "headers", "Authorization: Bearer x"); !strings.Contains(page.TestID("error-headers"), "secret") {
		t.Errorf("a secret in a header: %q", page.Text("dialog"))
	}
	saved := person.Post(link, "name", "prod-eu", "models", "gpt-*", "order", "5", "default", "on")
	if row := saved.TestID("providers"); !strings.Contains(row, "prod-eu") || !strings.Contains(row, "off") || !strings.Contains(row, "default") || !strings.Contains(row, "…1234") || !strings.Contains(row, "gpt-*") {
		t.Errorf("the list says %q", row)
	}
	if form := person.Get(link); form.Find(`textarea[name="models"]`).Text() != "gpt-*" || form.Has(`input[name="enabled"][checked]`) || strings.Contains(form.HTML, "canary") {
		t.Error("the form does not show what was saved")
	}
}

func TestReplacingTheSecretEndsTheOldOne(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, 0)
	person := product.SignUp(t, "northbeam")
	page := person.Post("/providers", "provider", "anthropic", "name", "prod", "key", "sk-wrong-key-0000", "base_url", double.URL)
	link := page.Find(`a[aria-label^="Replace"]`).AttrOr("href", "")
	test := page.Find(`form button[aria-label="Test now: prod"]`).Parent().AttrOr("action", "")
	if refused := person.Post(test); !strings.Contains(refused.TestID("state"), "failed its test") {
		t.Errorf("after a test that failed: %q", refused.TestID("state"))
	}

	if short := person.Post(link, "key", "x", "base_url", double.URL); short.Status != http.StatusUnprocessableEntity || short.TestID("error-key") == "" {
		t.Errorf("a short key: %d", short.Status)
	}
	done := person.Post(link, "key", webtest.ProviderKey, "base_url", double.URL)
	if !strings.Contains(done.Text("main"), "prod has a new secret") || strings.Contains(done.HTML, webtest.ProviderKey) {
		t.Errorf("replaced: %s", done.Text("main"))
	}
	if good := person.Post(test); !strings.Contains(good.TestID("state"), "passed its test") {
		t.Errorf("after a test that passed: %q", good.TestID("state"))
	}
}

func TestRefusedKeySaysSinceWhenAndHowManyFailed(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Post("/providers", "provider", "anthropic", "name", "prod", "key", "sk-01234567", "base_url", "")
	keys, err := product.DB.ProviderKeys.ProviderKeys(t.Context(), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	var exchanges []tenants.Exchange
	for i, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		exchanges = append(exchanges, tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), Workspace: person.Workspace.ID, At: time.Now().Add(time.Duration(i) * time.Second),
			Request: tenants.ExchangeRequest{APIKey: uuid.New()},
			Answer: tenants.ExchangeAnswer{
				Provider: tenants.ProviderAnthropic, ProviderKey: keys[0].ID, Status: status, ErrorFrom: "provider",
				ErrorType: "authentication_error",
			},
			Cost: tenants.ExchangeCost{CostMicroUSD: 250_000},
		})
	}
	if err := product.DB.Exchanges.RecordExchanges(t.Context(), person.Workspace.ID, exchanges); err != nil {
		t.Fatal(err)
	}
	page := person.Get("/providers")
	if said := page.TestID("rejected"); !strings.Contains(said, "2 requests failed") {
		t.Errorf("it says %q", said)
	}
	if said := page.TestID("state"); !strings.Contains(said, "last error 403 authentication_error") || !strings.Contains(said, "$0.50") {
		t.Errorf("it says %q", said)
	}
}
