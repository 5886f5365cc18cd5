package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

func TestWindowsOfModelsAreSetAndRemoved(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if err := person.DB.ModelWindows.LearnModelWindow(t.Context(), person.Workspace.ID, "vendor/learned", 128_000); err != nil {
		t.Fatal(err)
	}

	set := person.Post("/pipeline/windows", "model", " vendor/ours ", "window_tokens", "64,000")
	if !strings.Contains(set.TestID("window-done"), "is set") || set.Text(`[data-testid="windows"] tbody tr:first-child td:nth-child(-n+3)`) != "vendor/ours 64,000 set by someone" {
		t.Fatalf("%d at %s: %s", set.Status, set.Path, set.TestID("windows"))
	}
	if !strings.Contains(set.TestID("windows"), "vendor/learned 128,000 learned from the provider") {
		t.Errorf("what was learned is not listed: %s", set.TestID("windows"))
	}
	removed := person.Post("/pipeline/windows/remove", "model", "vendor/ours")
	if strings.Contains(removed.TestID("windows"), "vendor/ours") || !strings.Contains(removed.TestID("window-done"), "is removed") {
		t.Errorf("%d at %s: %s", removed.Status, removed.Path, removed.TestID("windows"))
	}
	if again := person.Post("/pipeline/windows/remove", "model", "vendor/ours"); again.Status != http.StatusOK {
		t.Errorf("removed by someone else before: %d", again.Status)
	}
}

func TestWindowOutOfRangeStandsAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for _, typed := range [][3]string{{"", "64000", "model"}, {strings.Repeat("m", 201), "64000", "model"}, {"ours", "12", "window_tokens"}, {"ours", "many", "window_tokens"}, {"ours", "100000001", "window_tokens"}} {
		page := person.Post("/pipeline/windows", "model", typed[0], "window_tokens", typed[1])
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+typed[2]) == "" {
			t.Errorf("%v: status %d", typed, page.Status)
		}
		if page.Find(`#windows input[name="model"]`).Last().AttrOr("value", "") != typed[0] || page.Find(`input[name="window_tokens"]`).AttrOr("value", "") != typed[1] {
			t.Errorf("%v: what was typed is lost", typed)
		}
	}
}

func TestLearntWindowsAreBoundedOnThePage(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	_, err := person.Database.Owner(t).Exec(t.Context(), `INSERT INTO model_windows (workspace_id, model, window_tokens, source)
		SELECT $1, 'model-' || n, 1000 + n, 'learnt' FROM generate_series(1, 1000) n`, person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	person.Post("/pipeline/windows", "model", "zz-ours", "window_tokens", "64000")

	page := person.Get("/pipeline")
	if rows := page.Find(`[data-testid="windows"] tbody tr`).Length(); rows != 40 || !strings.Contains(page.Text("#windows"), "961 more") {
		t.Errorf("%d rows: %s", rows, page.Text("#windows .hint"))
	}
	if first := page.Text(`[data-testid="windows"] tbody tr:first-child`); !strings.HasPrefix(first, "zz-ours") {
		t.Errorf("the first is %q", first)
	}
	if size := len(page.HTML); size > 100_000 {
		t.Errorf("the page has %d bytes", size)
	}
}

func TestFailedWindowsLeaveTheRest(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t, func(p *webtest.Product, deps *web.Deps) {
		deps.ModelWindows = brokenWindows{p.DB.ModelWindows}
	}).SignUp(t, "northbeam")
	page := person.Get("/pipeline")
	if page.Status != http.StatusOK || !strings.Contains(page.Text(`#windows [data-testid="failed"]`), "Reference") || !page.Has("form[data-tuning]") {
		t.Errorf("status %d: %s", page.Status, page.Text("#windows"))
	}
}

func TestKeysWithPipelinesOfTheirOwnAreListed(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if none := person.Get("/pipeline"); none.Has(`[data-testid="own-pipelines"]`) || !strings.Contains(none.Text("main"), "Every key uses this pipeline") {
		t.Error("keys are listed where no key exists")
	}
	person.Post("/keys", "name", "ci-agents", "expiry", "", "pipeline", "ipc: {targetUtilization: 0.5}")
	person.Post("/keys", "name", "gone", "expiry", "", "pipeline", "modules: none")
	person.Post("/keys", "name", "plain", "expiry", "")
	keys, err := person.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if key.Name == "gone" {
			person.Post("/keys/"+key.ID.String()+"/revoke", "confirm", "gone")
		}
	}

	list := person.Get("/pipeline")
	if text := list.TestID("own-pipelines"); list.Find(`[data-testid="own-pipelines"] li`).Length() != 1 || !strings.Contains(text, "ci-agents") || !strings.Contains(text, "targetUtilization: 0.5") {
		t.Errorf("listed: %s", text)
	}
	if page := person.Get(list.Find(`[data-testid="own-pipelines"] a`).AttrOr("href", "")); page.Find(`textarea[name="pipeline"]`).Text() != "ipc: {targetUtilization: 0.5}" {
		t.Errorf("the link leads to %s", page.Path)
	}
	viewer := person.Colleague(tenants.Viewer).Get("/pipeline")
	if viewer.Find(`[data-testid="own-pipelines"] li`).Length() != 1 || viewer.Has(`[data-testid="own-pipelines"] a`) || viewer.Has(`#windows form`) {
		t.Error("a viewer sees what they may not use")
	}
}
