package manage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
)

// imported is what came of an import.
type imported struct {
	DryRun  bool `json:"dry_run"`
	Changes []struct{ Field, Before, After string }
	ByHand  []string `json:"by_hand"`
}

// fields returns what was changed as "field: before → after".
func (i imported) fields() []string {
	list := make([]string, len(i.Changes))
	for n, change := range i.Changes {
		list[n] = change.Field + ": " + change.Before + " → " + change.After
	}
	return list
}

func (w *tenant) importConfig(t *testing.T, query, file string) imported {
	t.Helper()
	answer := w.send(t, http.MethodPost, "/config/import"+query, file, "Content-Type", "application/yaml")
	answer.want(t, http.StatusOK)
	var came imported
	answer.decode(t, &came)
	return came
}

func (w *tenant) exportConfig(t *testing.T, query string) string {
	t.Helper()
	answer := w.send(t, http.MethodGet, "/config/export"+query, "")
	answer.want(t, http.StatusOK)
	return string(answer.body)
}

// nextYear is noon of the last day of the next year.
func nextYear() string { return fmt.Sprintf("%d-12-31T12:00:00Z", time.Now().UTC().Year()+1) }

func TestAnExportHoldsEverythingThatIsSetAndNoSecret(t *testing.T) {
	t.Parallel()
	w, expires := setup(t).tenant(t, "ada"), nextYear()
	w.send(t, http.MethodPatch, "/keys/"+w.keyID, `{"budget_day_usd":2.5,"allowed_models":["claude-*"],"pipeline":"ipc: {minClear: 0.2}\n","expires_at":"`+expires+`"}`).want(t, http.StatusOK)
	w.send(t, http.MethodPut, "/retention", `{"days":30}`).want(t, http.StatusOK)
	w.send(t, http.MethodPut, "/models/prices", `{"prices":[{"model":"m","provider_key_id":"`+w.providerKey+`","input":1.1,"output":2}]}`).want(t, http.StatusNoContent)
	w.send(t, http.MethodPut, "/budgets", `{"budgets":[{"kind":"member","id":"`+w.userID(t)+`","budget_day_usd":2.57}]}`).want(t, http.StatusNoContent)
	_, revoked := w.createKey(t, "proxy")
	var keys struct{ Data []struct{ ID, Name string } }
	w.send(t, http.MethodGet, "/keys", "").decode(t, &keys)
	w.send(t, http.MethodDelete, "/keys/"+keys.Data[0].ID, "").want(t, http.StatusNoContent)

	file := w.exportConfig(t, "")
	for _, want := range []string{
		"palimpsest: 1\n", "retention_days: 30", "members_read: own", "targetUtilization: 0.61", "ttlSeconds: 3600", strings.TrimPrefix(w.modelWindow(), "/models/windows/") + ": 64000",
		"name: for manage", "scopes: [manage]", "budget_day_usd: 2.5", "allowed_models: [claude-*]", `expires_at: "` + expires + `"`, "minClear: 0.2",
		"name: key of ada", "provider: anthropic", "base_url: " + w.double.URL, "enabled: true",
		"model: m\n    provider_key: key of ada\n    input: 1.1", "kind: member\n    id: " + w.email(t) + "\n    budget_day_usd: 2.57",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("the file lacks %q", want)
		}
	}
	for _, secret := range []string{canaryKey, canaryKey[len(canaryKey)-4:], w.manage, w.manage[:12], w.read, revoked, "for proxy", "pnpm"} {
		if strings.Contains(file, secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
	if again := w.exportConfig(t, "?format=yaml"); again != file {
		t.Error("the same configuration is written otherwise")
	}
	var asJSON map[string]any
	if err := json.Unmarshal([]byte(w.exportConfig(t, "?format=json")), &asJSON); err != nil || asJSON["palimpsest"] != 1.0 {
		t.Errorf("as JSON: %v", err)
	}
	w.send(t, http.MethodGet, "/config/export?format=toml", "").want(t, http.StatusUnprocessableEntity)
}

func TestImportingAnExportChangesNothing(t *testing.T) {
	t.Parallel()
	w, expires := setup(t).tenant(t, "ada"), nextYear()
	w.send(t, http.MethodPatch, "/keys/"+w.keyID, `{"budget_day_usd":2.57,"allowed_ips":["10.0.0.0/8","203.0.113.7"],"pipeline":"# x\nipc: {minClear: 0.2}\n","expires_at":"`+expires+`"}`).want(t, http.StatusOK)
	w.send(t, http.MethodPatch, "/provider-keys/"+w.providerKey, `{"models":["claude-*"],"headers":[{"name":"X-Team","value":"a: b"}],"default":true}`).want(t, http.StatusOK)
	w.send(t, http.MethodPut, "/models/prices", `{"prices":[{"model":"m","input":1.1,"output":2,"cache_write_1h":3},{"model":"m","provider_key_id":"`+w.providerKey+`","input":0,"output":0}]}`).want(t, http.StatusNoContent)
	w.send(t, http.MethodPut, "/models/limits", `{"limits":[{"model":"m","output_tokens":9},{"model":"m","provider_key_id":"`+w.providerKey+`","window_tokens":9000}]}`).want(t, http.StatusNoContent)
	w.send(t, http.MethodPut, "/budgets", `{"budgets":[{"kind":"member","id":"`+w.userID(t)+`","budget_day_usd":2.57},{"kind":"member","id":"3f2b8a4e-0000-4000-8000-000000000000","budget_day_usd":1},{"kind":"end_user","tokens_per_minute":9}]}`).want(t, http.StatusNoContent)
	before := w.db.Rows(t, w.workspace)
	rows, _ := w.audited(t)

	for _, format := range []string{"", "?format=json"} {
		came := w.importConfig(t, "", w.exportConfig(t, format))
		if len(came.Changes) != 0 || len(came.ByHand) != 0 || came.DryRun {
			t.Errorf("%s: %+v", format, came)
		}
	}
	if after := w.db.Rows(t, w.workspace); after != before {
		t.Error("something of the workspace has changed")
	}
	if after, newest := w.audited(t); after != rows {
		t.Errorf("%d rows more, the newest %s", after-rows, newest)
	}
}

const wanted = `palimpsest: 1
settings: {time_zone: Europe/Berlin, retention_days: 90, redact: [card, key], redact_names: [Ada King]}
pipeline:
  modules: [ipc, patterns]
  ipc: {targetUtilization: 0.80, minClear: 0.2}
model_windows: {small/model: 32000}
model_prices:
  - {model: small/model, input: 0.5, output: 2}
  - {model: small/model, provider_key: key of ada, input: 0.4, output: 2, cache_read: 0.04}
  - {model: small/model, provider_key: spare, input: 0.3, output: 2}
model_limits:
  - {model: small/model, provider_key: key of ada, window_tokens: 16000}
budgets:
  - {kind: workspace, budget_month_usd: 100}
  - {kind: project, id: search, budget_day_usd: 2.5}
  - {kind: member, id: nobody@example.com, budget_day_usd: 1}
api_keys:
  - {name: for manage, scopes: [proxy], concurrency: 3, budget_month_usd: 10}
  - {name: nightly, scopes: [proxy, recall]}
provider_keys:
  - {name: key of ada, provider: anthropic, base_url: "https://llm.example.com", models: [claude-*], order: 4}
  - {name: spare, provider: openai, base_url: "https://spare.example.com"}
`

// S32
func TestAnImportChangesWhatDiffersAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	w.send(t, http.MethodPut, "/retention", `{"days":30}`).want(t, http.StatusOK)
	w.savePipeline(t, "application/yaml", "# ours\nipc:\n  targetUtilization: 0.61 # in May\n  blockTokens: 900\n").want(t, http.StatusOK)
	before := w.db.Rows(t, w.workspace)

	dry := w.importConfig(t, "?dry_run=true", wanted)
	want := []string{
		"settings.redact:  → card, key", "settings.redact_names:  → Ada King", "settings.time_zone: UTC → Europe/Berlin", "settings.retention_days: 30 → 90",
		"pipeline.modules: [ipc, compaction-bridge, rehydrator, patterns] → [ipc, patterns]", "pipeline.ipc.targetUtilization: 0.61 → 0.8", "pipeline.ipc.minClear: 0.1 → 0.2",
		"model_windows.small/model:  → 32000",
		"model_prices.small/model " + w.providerKey + " cache_read:  → 0.04", "model_prices.small/model " + w.providerKey + " input:  → 0.4", "model_prices.small/model " + w.providerKey + " output:  → 2",
		"model_prices.small/model input:  → 0.5", "model_prices.small/model output:  → 2", "model_limits.small/model " + w.providerKey + " window_tokens:  → 16000", "budgets.project search budget_day_usd:  → 2.50", "budgets.workspace budget_month_usd:  → 100.00", "api_keys.for manage.budget_month_usd:  → 10.00", "api_keys.for manage.concurrency:  → 3",
		"provider_keys.key of ada.models:  → claude-*", "provider_keys.key of ada.order:  → 4",
	}
	if !dry.DryRun || !slices.Equal(dry.fields(), want) {
		t.Errorf("it would change\n%s", strings.Join(dry.fields(), "\n"))
	}
	for n, say := range []string{`Provider key "spare" does not exist here`, "nobody@example.com is not a member here", "scopes never change", `API key "nightly" does not exist here`, "replace its secret there", `Provider key "spare" for openai does not exist here: add it with its secret to https://spare.example.com`} {
		if n >= len(dry.ByHand) || !strings.Contains(dry.ByHand[n], say) {
			t.Errorf("by hand: %q lacks %q", dry.ByHand, say)
		}
	}
	if after := w.db.Rows(t, w.workspace); after != before {
		t.Fatal("a dry run changed something")
	}

	done := w.importConfig(t, "", wanted)
	if done.DryRun || !slices.Equal(done.fields(), want) || !slices.Equal(done.ByHand, dry.ByHand) {
		t.Errorf("it changed\n%s", strings.Join(done.fields(), "\n"))
	}
	var got savedPipeline
	w.send(t, http.MethodGet, "/pipeline", "").decode(t, &got)
	if got.YAML != "# ours\nipc:\n  blockTokens: 900\n  minClear: 0.2\nmodules: [ipc, patterns]\n" || got.Version != 3 {
		t.Errorf("the pipeline is version %d:\n%s", got.Version, got.YAML)
	}
	entries, err := w.db.DB.Audit.Audit(t.Context(), w.workspace, tenants.AuditFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var actions []tenants.Action
	for _, entry := range entries {
		actions = append(actions, entry.Action)
	}
	if !slices.Equal(actions, []tenants.Action{
		tenants.ConfigImported, tenants.ProviderKeyChanged, tenants.KeyChanged, tenants.BudgetsSet, tenants.ModelLimitsSet, tenants.ModelPricesSet, tenants.ModelWindowSet, tenants.PipelineSaved, tenants.RetentionSet, tenants.SettingsSaved,
	}) || entries[0].After["changes"] != "20" {
		t.Errorf("noted %v, %v", actions, entries[0].After)
	}
	if again := w.importConfig(t, "", wanted); len(again.Changes) != 0 || len(again.ByHand) != 6 {
		t.Errorf("once more: %+v", again)
	}
}

func TestAnImportWithAFaultTellsEveryOneAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	before := w.db.Rows(t, w.workspace)
	answer := w.send(t, http.MethodPost, "/config/import", strings.Join([]string{
		"palimpsest: 2",                      // 1
		"settings:",                          // 2
		"  time_zone: Mars/Olympus",          // 3
		"  timezone: UTC",                    // 4
		"  retention_days: 30",               // 5: fine, and undone
		"pipeline:",                          // 6
		"  ipc: {minClear: 7}",               // 7
		"  patterns:",                        // 8
		"    maxInjectd: 3",                  // 9
		"model_windows:",                     // 10
		"  small: 12",                        // 11
		"api_keys:",                          // 12
		"  - name: for manage",               // 13
		"    concurrency: -1",                // 14
		"    budget_day_usd: lots",           // 15
		"    secret: plm_live_0123",          // 16
		"    expires_at: 2001-01-01",         // 17
		"  - scopes: [proxy]",                // 18
		"  - {name: new, pipeline: 'ipc: ['", // 19
		"    , scopes: [all]}",               // 20
		"provider_keys:",                     // 21
		"  - name: key of ada",               // 22
		"    order: 5000",                    // 23
		"sessions: []",                       // 24
	}, "\n"), "Content-Type", "application/yaml")
	answer.want(t, http.StatusUnprocessableEntity)
	var problem struct {
		Errors []struct {
			Field, Message string
			Line           int
		}
	}
	answer.decode(t, &problem)
	want := map[string]int{
		"palimpsest": 1, "settings.time_zone": 3, "settings.timezone": 4, "pipeline.ipc.minClear": 7, "pipeline.patterns.maxInjectd": 9,
		"model_windows.small": 11, "api_keys.for manage.concurrency": 14, "api_keys.for manage.budget_day_usd": 15, "api_keys.for manage.secret": 16,
		"api_keys.for manage.expires_at": 17, "api_keys.2.name": 18, "api_keys.new.scopes": 20, "provider_keys.key of ada.order": 23, "sessions": 24,
	}
	for _, fault := range problem.Errors {
		if line, is := want[fault.Field]; !is || line != fault.Line || fault.Message == "" {
			t.Errorf("%s in line %d: %s", fault.Field, fault.Line, fault.Message)
		}
		delete(want, fault.Field)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v of %s", want, answer.body)
	}
	if strings.Contains(string(answer.body), "plm_live_0123") {
		t.Error("the answer repeats a secret")
	}
	if after := w.db.Rows(t, w.workspace); after != before {
		t.Error("something was changed")
	}
	for _, file := range []string{"", "# nothing\n", "- a", "palimpsest: [", "settings: {no_store: true}", "a: &a 1\nb: *a", "palimpsest: 1\nsettings: 5", "palimpsest: 1\napi_keys: {}"} {
		w.send(t, http.MethodPost, "/config/import", file, "Content-Type", "application/yaml").want(t, http.StatusUnprocessableEntity)
	}
	w.send(t, http.MethodPost, "/config/import?dry_run=maybe", "palimpsest: 1", "Content-Type", "application/yaml").want(t, http.StatusUnprocessableEntity)
	w.send(t, http.MethodPost, "/config/import", "palimpsest: 1", "Content-Type", "text/plain").want(t, http.StatusUnsupportedMediaType)
}

// S3: a file of another workspace is read by the names of its keys, never by their ids.
func TestAFileOfAnotherWorkspaceReachesNothingThere(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "bee")
	b.send(t, http.MethodPatch, "/keys/"+b.keyID, `{"concurrency":7}`).want(t, http.StatusOK)
	before := p.db.Rows(t, b.workspace)

	came := a.importConfig(t, "", b.exportConfig(t, ""))
	if !slices.Contains(came.fields(), "api_keys.for manage.concurrency:  → 7") || len(came.ByHand) != 1 || !strings.Contains(came.ByHand[0], `"key of bee"`) {
		t.Errorf("it changed %v, by hand %q", came.fields(), came.ByHand)
	}
	if after := p.db.Rows(t, b.workspace); after != before {
		t.Error("the other workspace has changed")
	}
	// Two keys of one name are not told apart without their ids.
	a.createKey(t, "manage")
	answer := a.send(t, http.MethodPost, "/config/import", "palimpsest: 1\napi_keys:\n  - {name: for manage, concurrency: 9}\n", "Content-Type", "application/yaml")
	answer.want(t, http.StatusUnprocessableEntity)
	if !strings.Contains(string(answer.body), "2 keys of this workspace") {
		t.Errorf("answered %s", answer.body)
	}
}

func TestAnImportKeepsAnExpiryThatIsPast(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	past := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	if _, err := w.db.Owner(t).Exec(t.Context(), "UPDATE api_keys SET expires_at = $1 WHERE id = $2", past, w.keyID); err != nil {
		t.Fatal(err)
	}
	if came := w.importConfig(t, "", w.exportConfig(t, "")); len(came.Changes) != 0 {
		t.Errorf("it changed %v", came.fields())
	}
}
