package pages_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/clients"
	"palimpsest/web/webtest"
)

const keysWindow = 30_000

// S7
func TestSecretIsShownOnceAndInNoAddress(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	created := person.Post("/keys", "name", "laptop", "expiry", "30")
	secret := created.TestID("secret")
	if created.Status != http.StatusCreated || !strings.HasPrefix(secret, "plm_") {
		t.Fatalf("status %d, secret %q", created.Status, secret)
	}
	if _, err := person.Keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("the secret does not work: %v", err)
	}
	if created.Path != "/keys" || created.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("shown at %s with Cache-Control %q", created.Path, created.Header.Get("Cache-Control"))
	}
	for id, want := range map[string]string{
		"d-code-claude-code-shell":  `export ANTHROPIC_AUTH_TOKEN="` + secret + `"`,
		"d-code-codex-key":          `export PALIMPSEST_KEY="` + secret + `"`,
		"d-code-cursor-key":         secret,
		"d-code-recall-claude-code": `--header "Authorization: Bearer ` + secret + `"`,
	} {
		if set := created.Find("#" + id).Text(); !strings.Contains(set, want) {
			t.Errorf("%s lacks the key: %q", id, set)
		}
	}
	if created.TestID("copied") == "" {
		t.Error("nothing asks whether it was copied")
	}
	list := person.Get("/keys")
	if strings.Contains(list.HTML, secret) {
		t.Error("the list shows the secret again")
	}
	if row := list.Text(`[data-testid="keys"] tbody tr`); !strings.Contains(row, "laptop") || !strings.Contains(row, secret[len(secret)-4:]) {
		t.Errorf("the list says %q", row)
	}
}

func TestInvalidKeyIsExplainedAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	for field, form := range map[string][]string{
		"name":   {"name", "  ", "expiry", ""},
		"expiry": {"name", "laptop", "expiry", "1000000"},
	} {
		page := person.Post("/keys", form...)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%s: status %d: %q", field, page.Status, page.Text("dialog"))
		}
	}
	if long := person.Post("/keys", "name", strings.Repeat("x", 101), "expiry", ""); long.Find(`input[name="name"]`).AttrOr("value", "") == "" {
		t.Error("what was typed is gone")
	}
}

func TestRevokingNeedsTheNameTyped(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	secret := person.Post("/keys", "name", "laptop", "expiry", "").TestID("secret")
	link := person.Get("/keys").Find(`[data-testid="keys"] a[aria-label="Revoke laptop"]`).AttrOr("href", "")

	if asked := person.Get(link); !strings.Contains(asked.Text("dialog"), "cannot be undone") {
		t.Errorf("the question is %q", asked.Text("dialog"))
	}
	wrong := person.Post(link, "confirm", "desktop")
	if wrong.Status != http.StatusUnprocessableEntity || wrong.TestID("error-confirm") == "" {
		t.Errorf("a wrong name: status %d, %q", wrong.Status, wrong.TestID("error-confirm"))
	}
	if _, err := person.Keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("the key ended without its name: %v", err)
	}
	done := person.Post(link, "confirm", "laptop")
	if done.Status != http.StatusOK || !strings.Contains(done.Text("main"), "laptop is revoked") || done.Text(`[data-testid="keys"] .tag`) != "revoked" {
		t.Errorf("revoking: %d, %q", done.Status, done.Text("main"))
	}
	if _, err := person.Keys.Authenticate(t.Context(), secret); err == nil {
		t.Error("the revoked key still works")
	}
}

func TestUsableKeysStandFirstOnThePageAndInItsFile(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	for _, name := range []string{"first", "ended", "gone", "last"} {
		person.Post("/keys", "name", name, "expiry", "")
	}
	person.Post(person.Get("/keys").Find(`[data-testid="keys"] a[aria-label="Revoke gone"]`).AttrOr("href", ""), "confirm", "gone")
	if _, err := product.Database.Owner(t).Exec(t.Context(), "UPDATE api_keys SET expires_at = now() - interval '1 hour' WHERE name = 'ended'"); err != nil {
		t.Fatal(err)
	}

	const want = "last first ended gone"
	if got := person.Get("/keys").Text(`[data-testid="keys"] b.ttl`); got != want {
		t.Errorf("the page has %q", got)
	}
	rows, err := csv.NewReader(strings.NewReader(person.Get("/keys/csv").HTML)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	if got := strings.Join([]string{rows[1][1], rows[2][1], rows[3][1], rows[4][1]}, " "); got != want {
		t.Errorf("the file has %q", got)
	}
}

func TestSnippetsHoldThisServersAddress(t *testing.T) {
	t.Parallel()
	page := webtest.Start(t).SignUp(t, "northbeam").Get("/keys")

	for _, client := range clients.All(webtest.PublicURL) {
		shown := page.Find(`[data-testid="snippet-` + client.ID + `"]`)
		if shown.Find("h3").Text() != client.Title || !strings.Contains(shown.Text(), client.Hint) || shown.Find("code").Length() != len(client.Snippets) {
			t.Errorf("%s is shown as %s", client.ID, shown.Text())
		}
		for i, snippet := range client.Snippets {
			code := shown.Find("code").Eq(i)
			if code.Text() != snippet.Text || !strings.Contains(code.Text(), webtest.PublicURL) {
				t.Errorf("%s, %s:\n%s", client.ID, snippet.ID, code.Text())
			}
			if copies := page.Find(`[data-copy="` + code.AttrOr("id", "-") + `"]`).Length(); copies != 1 {
				t.Errorf("%s, %s: %d buttons copy it", client.ID, snippet.ID, copies)
			}
		}
	}
}

func TestFirstStepsAreShownUntilAKeyIsUsed(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	const waits = `[hx-get="/overview/first-request?bare=1"]`

	if !person.Get("/keys").Has("#clients " + waits) {
		t.Error("a new workspace does not see its first steps")
	}
	created := person.Post("/keys", "name", "laptop", "expiry", "")
	if created.Find(waits).Length() != 1 || !created.Has("dialog "+waits) {
		t.Errorf("beside the secret, %d wait for the first request", created.Find(waits).Length())
	}
	// A link would lead away from the secret, which is not shown again.
	if steps := person.Get("/overview/first-request?bare=1"); steps.Has("a") || !steps.Has(waits) {
		t.Errorf("the steps beside the secret: %s", steps.HTML)
	}
	if _, err := person.Keys.Authenticate(t.Context(), created.TestID("secret")); err != nil {
		t.Fatal(err)
	}
	if err := person.Keys.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if person.Get("/keys").Has(waits) {
		t.Error("a workspace whose key is used waits for its first request")
	}
}

func TestViewersLookAndMembersRevokeTheirOwnOnly(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.Post("/keys", "name", "mine", "expiry", "")
	other, _, hash := person.Keys.Create(person.Workspace.ID, "others", []tenants.Scope{tenants.ScopeProxy}, person.User.ID, nil)
	if err := person.DB.APIKeys.CreateAPIKey(t.Context(), person.Workspace.ID, other, hash); err != nil {
		t.Fatal(err)
	}
	const disown = "UPDATE api_keys SET created_by = gen_random_uuid() WHERE id = $1"
	if _, err := person.Database.Owner(t).Exec(t.Context(), disown, other.ID); err != nil {
		t.Fatal(err)
	}

	member := person.As(tenants.Regular).Get("/keys")
	if !member.Has(`a[aria-label="Revoke mine"]`) || member.Has(`a[aria-label="Revoke others"]`) {
		t.Error("a member may revoke other keys than their own")
	}
	if page := person.Post("/keys/"+other.ID.String()+"/revoke", "confirm", "others"); page.Status != http.StatusNotFound {
		t.Errorf("a member who revokes another's key gets %d", page.Status)
	}
	viewer := person.As(tenants.Viewer)
	if page := viewer.Get("/keys"); page.Has(`a[href="/keys/new"]`) || page.Has(`a[aria-label^="Revoke"]`) {
		t.Error("a viewer sees controls that they may not use")
	}
	if page := viewer.Post("/keys", "name", "sneaky", "expiry", ""); page.Status != http.StatusForbidden {
		t.Errorf("a viewer who creates a key gets %d", page.Status)
	}
}

// S3
func TestKeysOfAnotherWorkspaceAreNotThere(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	theirs, mine := product.SignUp(t, "theirs"), product.SignUp(t, "mine")
	secret := theirs.Post("/keys", "name", "laptop", "expiry", "").TestID("secret")
	link := theirs.Get("/keys").Find(`[data-testid="keys"] a[aria-label="Revoke laptop"]`).AttrOr("href", "")

	for _, page := range []webtest.Page{mine.Get(link), mine.Post(link, "confirm", "laptop"), mine.Get("/keys/not-an-id/revoke")} {
		if page.Status != http.StatusNotFound {
			t.Errorf("status %d", page.Status)
		}
	}
	if _, err := product.Keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("their key: %v", err)
	}
}

func TestLimitsAreSetOnCreationAndChangedLater(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	created := person.Post("/keys", "name", "ci", "expiry", "30", "allowed_models", "claude-*, gpt-5.5", "allowed_ips", "10.0.0.0/8 203.0.113.7",
		"requests_per_minute", "60", "budget_day_usd", "7.50", "lock_overrides", "yes", "no_store", "yes", "scopes", "proxy", "pipeline", "ipc: {targetUtilization: 0.5}")
	if created.Status != http.StatusCreated {
		t.Fatalf("status %d: %s", created.Status, created.Text("dialog"))
	}
	key, err := person.Keys.Authenticate(t.Context(), created.TestID("secret"))
	if err != nil {
		t.Fatal(err)
	}
	limits := key.Limits
	if strings.Join(limits.Models, "|") != "claude-*|gpt-5.5" || strings.Join(limits.AddressList(), "|") != "10.0.0.0/8|203.0.113.7" || limits.RequestsPerMinute != 60 ||
		limits.DayMicroUSD != 7_500_000 || !limits.LockOverrides || !limits.NoStore || key.ExpiresAt == nil || key.Pipeline != "ipc: {targetUtilization: 0.5}" {
		t.Errorf("created %+v", key)
	}

	list := person.Get("/keys")
	if row := list.Text(`[data-testid="keys"] tbody tr`); !strings.Contains(row, "claude-*, gpt-5.5") || !strings.Contains(row, "60 requests/min") || !strings.Contains(row, "figures only") || !strings.Contains(row, "Own settings overrides locked you") {
		t.Errorf("the list says %q", row)
	}
	link := list.Find(`[data-testid="keys"] a[aria-label="Edit ci"]`).AttrOr("href", "")
	form := person.Get(link)
	if form.Find(`input[name="allowed_models"]`).AttrOr("value", "") != "claude-*, gpt-5.5" || form.Find(`input[name="budget_day_usd"]`).AttrOr("value", "") != "7.50" ||
		form.Find(`textarea[name="pipeline"]`).Text() != key.Pipeline || !form.Has(`input[name="lock_overrides"][checked]`) || !form.Has(`input[name="no_store"][checked]`) || form.Has(`input[name="scopes"]`) {
		t.Errorf("the form holds %s", form.Text("dialog"))
	}
	saved := person.Post(link, "name", "ci-agents", "expiry", "keep", "requests_per_minute", "", "concurrency", "4", "allowed_models", "", "allowed_endpoints", "/v1/messages*")
	if saved.Status != http.StatusOK || !strings.Contains(saved.Text("main"), "ci-agents is saved") {
		t.Fatalf("status %d: %s", saved.Status, saved.Text("main"))
	}
	changed, err := person.Keys.Authenticate(t.Context(), created.TestID("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if changed.Name != "ci-agents" || changed.Limits.RequestsPerMinute != 0 || changed.Limits.Concurrency != 4 || changed.Limits.LockOverrides || changed.Limits.NoStore ||
		len(changed.Limits.Models) != 0 || changed.Pipeline != "" || changed.ExpiresAt == nil || !changed.ExpiresAt.Equal(*key.ExpiresAt) {
		t.Errorf("changed %+v", changed)
	}
	if row := person.Get("/keys").Text(`[data-testid="keys"] tbody tr`); !strings.Contains(row, "Workspace you") {
		t.Errorf("without settings of its own the list says %q", row)
	}
}

func TestInvalidLimitsAreExplainedAtTheirField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.Post("/keys", "name", "laptop", "expiry", "")
	link := person.Get("/keys").Find(`[data-testid="keys"] a[aria-label="Edit laptop"]`).AttrOr("href", "")
	for field, typed := range map[string]string{
		"allowed_models": "naïve", "allowed_endpoints": "messages", "allowed_ips": "10.0.0.0/40", "requests_per_minute": "many", "tokens_per_minute": "-1",
		"concurrency": "1.5", "budget_day_usd": "NaN", "budget_month_usd": "-3", "pipeline": "ipc: {targetUtilization: 7}",
	} {
		for path, expiry := range map[string]string{"/keys": "", link: "keep"} {
			page := person.Post(path, "name", "another", "expiry", expiry, field, typed)
			shown := page.Find(`[name="` + field + `"]`)
			if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" || shown.AttrOr("value", shown.Text()) != typed || !page.Has("details[open]") {
				t.Errorf("%s at %s: status %d: %q", field, path, page.Status, page.Text("dialog"))
			}
		}
	}
}

// S7: the new secret is shown once too, and the old one ends when it was to.
func TestRotationShowsAnotherSecretOnce(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	old := person.Post("/keys", "name", "laptop", "expiry", "").TestID("secret")
	link := person.Get("/keys").Find(`[data-testid="keys"] a[aria-label="Rotate laptop"]`).AttrOr("href", "")

	if asked := person.Get(link); !asked.Has(`select[name="grace"]`) {
		t.Errorf("the question is %q", asked.Text("dialog"))
	}
	if wrong := person.Post(link, "grace", "9999h"); wrong.Status != http.StatusUnprocessableEntity || wrong.TestID("error-grace") == "" {
		t.Errorf("a grace that is not a choice: status %d", wrong.Status)
	}
	rotated := person.Post(link, "grace", "24h")
	secret := rotated.TestID("secret")
	if rotated.Status != http.StatusOK || secret == old || rotated.TestID("copied") == "" || !strings.Contains(rotated.TestID("old-secret"), "works until") || rotated.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d: %s", rotated.Status, rotated.Text("dialog"))
	}
	for _, works := range []string{old, secret} {
		if _, err := person.Keys.Authenticate(t.Context(), works); err != nil {
			t.Errorf("%s…: %v", works[:12], err)
		}
	}
	if list := person.Get("/keys"); strings.Contains(list.HTML, secret) || !strings.Contains(list.Text(`[data-testid="keys"]`), "old secret until") {
		t.Errorf("the list says %q", list.Text(`[data-testid="keys"]`))
	}
	newest := person.Post(link, "grace", "0s").TestID("secret")
	for _, ended := range []string{old, secret} {
		if _, err := person.Keys.Authenticate(t.Context(), ended); err == nil {
			t.Errorf("%s… still works", ended[:12])
		}
	}
	if _, err := person.Keys.Authenticate(t.Context(), newest); err != nil {
		t.Error(err)
	}
}

// A key never may more than who hands it out.
func TestMembersHandOutNoKeyThatManages(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if page := person.Post("/keys", "name", "deploy", "expiry", "", "scopes", "manage"); page.Status != http.StatusCreated {
		t.Fatalf("an owner: status %d", page.Status)
	}
	link := person.Get("/keys").Find(`[data-testid="keys"] a[aria-label="Rotate deploy"]`).AttrOr("href", "")
	member := person.As(tenants.Regular)
	if page := member.Post("/keys", "name", "sneaky", "expiry", "", "scopes", "manage"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-scopes") == "" {
		t.Errorf("a member: status %d", page.Status)
	}
	if page := member.Post("/keys", "name", "reader", "expiry", "", "scopes", "read"); page.Status != http.StatusCreated {
		t.Errorf("a member's own reading key: status %d", page.Status)
	}
	if page := member.Post(link, "grace", "24h"); page.Status != http.StatusForbidden {
		t.Errorf("a member who rotates a key that manages: status %d", page.Status)
	}
}

// The page that shows a second key waits for its first request, and for no other's.
func TestFirstRequestWithEachKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	first := person.Connect(webtest.Provider(t, keysWindow), "laptop")
	say := func(secret string) {
		person.TalkOnce(secret, keysWindow, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`, "claude-cli/2.1.0 (external, cli)")
	}
	say(first)
	if err := person.Keys.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	created := person.Post("/keys", "name", "cursor", "expiry", "")
	part := created.Find(`#dlg-created [data-testid="key-use"]`)
	again := part.Find(`a.link`).AttrOr("href", "")
	if part.AttrOr("hx-get", "") != again || part.AttrOr("data-live", "") != "steps" || !strings.HasSuffix(again, "/use") {
		t.Fatalf("nothing waits: %s", part.Text())
	}
	say(first)
	if page := person.Get(again); page.Status != http.StatusOK || page.TestID("key-used") != "" || !strings.Contains(page.TestID("key-use"), "Listening for the first request with cursor") {
		t.Errorf("another key's request counts: %q", page.TestID("key-use"))
	}
	if never := person.Get("/keys").Find(`[data-testid="keys"] a[href="` + again + `"]`).Text(); never != "never" {
		t.Errorf("the list says %q", never)
	}
	say(created.TestID("secret"))
	alone := person.Get(again, "HX-Request-Type", "partial")
	if said := alone.TestID("key-used"); alone.Has("h1") || !strings.Contains(said, "Request with cursor received. From Claude Code to claude-sonnet-4-5, answered with 200") {
		t.Errorf("after its request: %q", said)
	}
	if part := alone.Find(`[data-testid="key-use"]`); part.AttrOr("hx-get", "") != "" {
		t.Error("it goes on to wait")
	}
	if page := person.Get(again); page.Find(`.head a[href^="/requests/"]`).Length() != 1 {
		t.Error("no way leads to the request")
	}
	for _, none := range []string{"/keys/" + webtest.Nobody() + "/use", "/keys/x/use", again} {
		if page := product.SignUp(t, "other"+strings.Trim(none[len(none)-8:], "/")).Get(none); page.Status != http.StatusNotFound {
			t.Errorf("%s answers %d", none, page.Status)
		}
	}
}

func TestKeyThatIsRevokedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	created := person.Post("/keys", "name", "laptop", "expiry", "")
	path := created.Find(`#dlg-created .no-js a.link`).AttrOr("href", "")

	person.Post(strings.TrimSuffix(path, "use")+"revoke", "confirm", "laptop")
	page := person.Get(path)
	if said := page.TestID("key-use"); page.Find("[hx-get]").Length() != 0 || !strings.Contains(said, "no longer accepted") {
		t.Errorf("it says %q", said)
	}
}
