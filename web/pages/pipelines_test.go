package pages_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// pipelinesSave saves a pipeline of the person's workspace past the pages.
func pipelinesSave(t *testing.T, person *webtest.Person, over int, config tenants.PipelineConfig) {
	t.Helper()
	if config.SavedBy == uuid.Nil {
		config.SavedBy = person.User.ID
	}
	if _, err := person.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, over, config); err != nil {
		t.Fatal(err)
	}
}

// newest returns the version in effect.
func newest(t *testing.T, person *webtest.Person) tenants.PipelineConfig {
	t.Helper()
	config, err := person.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestHistoryTellsEveryVersionWithWhoAndWhat(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if page := person.Get("/pipeline/history"); page.Status != http.StatusOK || !strings.Contains(page.Text("main"), "The default pipeline applies") {
		t.Fatalf("status %d: %s", page.Status, page.Text("main"))
	}
	pipelinesSave(t, person, 0, tenants.PipelineConfig{YAML: "ipc: {targetUtilization: 0.6}"})
	pipelinesSave(t, person, 1, tenants.PipelineConfig{Modules: "ipc,patterns", YAML: "ipc: {targetUtilization: 0.6}", SavedBy: uuid.New()})
	pipelinesSave(t, person, 2, tenants.PipelineConfig{Modules: "patterns,ipc", YAML: "ipc: {targetUtilization: 0.5}"})

	page := person.Get("/pipeline/history")
	rows := page.Find(`[data-testid="versions"] > li`)
	if rows.Length() != 3 {
		t.Fatalf("%d rows: %s", rows.Length(), page.Text("main"))
	}
	for i, want := range [][]string{
		{"Version 3", "Current", "ipc.targetUtilization", "0.6", "→", "0.5", "order", "ipc, patterns", "patterns, ipc", person.Email},
		{"Version 2", "patterns", "off", "on", "someone who left"},
		{"Version 1", "ipc.targetUtilization", "0.8", "0.6", person.Email},
	} {
		for _, word := range want {
			if text := rows.Eq(i).Text(); !strings.Contains(text, word) {
				t.Errorf("row %d lacks %q: %s", i, word, text)
			}
		}
	}
	if page.Find(`[data-testid="in-force"]`).Length() != 1 || page.Find(`a[href$="/restore"]`).Length() != 2 || page.Has(`a[href="/pipeline/history/3/restore"]`) {
		t.Error("not the older versions alone can be restored")
	}
	if !page.Has(`nav a[href="/pipeline"][aria-current]`) || !page.Has(`main a[href="/pipeline"]`) || !page.Has(`main a[href="/pipeline/yaml"]`) {
		t.Error("the page does not stand below the pipeline's")
	}
}

func TestHistoryIsPagedFromTheNewest(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for version := range 27 {
		pipelinesSave(t, person, version, tenants.PipelineConfig{YAML: "ipc: {preserveLastTurns: " + strconv.Itoa(version+1) + "}"})
	}
	first := person.Get("/pipeline/history")
	if n := first.Find(`[data-testid="versions"] > li`).Length(); n != 25 || !strings.Contains(first.Text(`[data-testid="versions"] > li:last-child`), "Version 3") {
		t.Fatalf("%d rows", n)
	}
	// What the last row of a page changed is against a version of the next page.
	if text := first.Text(`[data-testid="versions"] > li:last-child dl`); text != "ipc.preserveLastTurns 2→3" && text != "ipc.preserveLastTurns 2 → 3" {
		t.Errorf("changed %q", text)
	}
	last := person.Get(first.Find(`[data-testid="older"]`).AttrOr("href", ""))
	if n := last.Find(`[data-testid="versions"] > li`).Length(); n != 2 || last.Has(`[data-testid="older"]`) || last.Has(`[data-testid="in-force"]`) {
		t.Errorf("%d rows on the last page", n)
	}
	if page := person.Get("/pipeline/history?before=x"); page.Status != http.StatusBadRequest {
		t.Errorf("status %d", page.Status)
	}
	if page := person.Get("/pipeline/history?before=1"); page.Status != http.StatusOK || !strings.Contains(page.Text("main"), "There is no older version") {
		t.Errorf("status %d", page.Status)
	}
}

// S32
func TestRestoringAVersionMakesTheNextVersion(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	pipelinesSave(t, person, 0, tenants.PipelineConfig{Modules: "ipc", YAML: "# ours\nipc: {targetUtilization: 0.6}\n"})
	pipelinesSave(t, person, 1, tenants.PipelineConfig{YAML: "ipc: {targetUtilization: 0.5}\n"})

	page := person.Get("/pipeline/history/1")
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("against"), "ipc.targetUtilization 0.6 0.5") || !strings.Contains(page.Text("#version-yaml"), "# ours") ||
		!strings.Contains(page.TestID("diff"), "targetUtilization: 0.5") {
		t.Fatalf("status %d: %s", page.Status, page.Text("main"))
	}
	asked := person.Get("/pipeline/history/1/restore")
	if !asked.Has("dialog[open]#dlg-restore") || asked.Find("#dlg-restore input[name=over]").AttrOr("value", "") != "2" || !strings.Contains(asked.Text("#dlg-restore"), "0.5 → 0.6") && !strings.Contains(asked.Text("#dlg-restore"), "0.5→0.6") {
		t.Fatalf("asked %s", asked.Text("#dlg-restore"))
	}
	done := person.Post("/pipeline/history/1/restore", "over", "2")
	if done.Path != "/pipeline/history?restored=3" || !strings.Contains(done.TestID("done"), "Restored as version 3") {
		t.Fatalf("restoring led to %s: %s", done.Path, done.Text("main"))
	}
	if now := newest(t, person); now.Version != 3 || now.Modules != "ipc" || now.YAML != "# ours\nipc: {targetUtilization: 0.6}\n" || now.SavedBy != person.User.ID {
		t.Errorf("current is %+v", now)
	}
	entries, err := person.DB.Audit.Audit(t.Context(), person.Workspace.ID, tenants.AuditFilter{Action: string(tenants.PipelineRestored)})
	if err != nil || len(entries) != 1 || entries[0].Actor.Name != person.Email || entries[0].After["restored_version"] != "1" {
		t.Errorf("noted %+v, %v", entries, err)
	}
}

func TestAVersionIsNotRestoredOverSomebodyElses(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	pipelinesSave(t, person, 0, tenants.PipelineConfig{YAML: "ipc: {minClear: 0.2}"})
	pipelinesSave(t, person, 1, tenants.PipelineConfig{YAML: "ipc: {minClear: 0.3}"})
	pipelinesSave(t, person, 2, tenants.PipelineConfig{YAML: "ipc: {minClear: 0.4}"})

	page := person.Post("/pipeline/history/1/restore", "over", "2")
	if page.Status != http.StatusConflict || !strings.Contains(page.TestID("conflict"), "Someone saved version 3") || page.Find("#dlg-restore input[name=over]").AttrOr("value", "") != "3" {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	for _, path := range []string{"/pipeline/history/3/restore", "/pipeline/history/9/restore", "/pipeline/history/x/restore"} {
		if page := person.Post(path, "over", "3"); page.Status != http.StatusUnprocessableEntity && page.Status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, page.Status)
		}
	}
	if page := person.Post("/pipeline/history/1/restore"); page.Status != http.StatusBadRequest {
		t.Errorf("without a version to restore over: status %d", page.Status)
	}
	if now := newest(t, person); now.Version != 3 {
		t.Errorf("version %d is current", now.Version)
	}
}

func TestAVersionThatIsNoLongerAcceptedSaysWhy(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	pipelinesSave(t, person, 0, tenants.PipelineConfig{YAML: "ipc:\n  warpSpeed: 9\n"})
	pipelinesSave(t, person, 1, tenants.PipelineConfig{YAML: "ipc: {minClear: 0.3}"})

	list := person.Get("/pipeline/history").TestID("versions")
	if !strings.Contains(list, "No longer valid") || !strings.Contains(list, "line 2: ipc.warpSpeed: is unknown") || !strings.Contains(list, "changes cannot be shown") {
		t.Errorf("listed %s", list)
	}
	page := person.Post("/pipeline/history/1/restore", "over", "2")
	if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("problem"), "ipc.warpSpeed") || page.Has(`a[href$="/restore"]`) {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	if now := newest(t, person); now.Version != 2 {
		t.Errorf("version %d is current", now.Version)
	}

	pipelinesSave(t, person, 2, tenants.PipelineConfig{YAML: "ipc: {warpSpeed: 9}"})
	for _, path := range []string{"/pipeline/yaml", "/pipeline/yaml?show=all"} {
		if page := person.Get(path); page.Status != http.StatusOK || !strings.Contains(page.TestID("problem"), "warpSpeed") {
			t.Errorf("%s: status %d", path, page.Status)
		}
	}
}

// S3
func TestPipelineHistoryIsVisibleToReadersOfItsWorkspaceOnly(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person, other := product.SignUp(t, "northbeam"), product.SignUp(t, "southbeam")
	pipelinesSave(t, person, 0, tenants.PipelineConfig{YAML: "ipc: {minClear: 0.2}"})
	pipelinesSave(t, person, 1, tenants.PipelineConfig{YAML: "ipc: {minClear: 0.3}"})
	pipelinesSave(t, other, 0, tenants.PipelineConfig{YAML: "ipc: {minClear: 0.4}"})

	if page := other.Get("/pipeline/history/2"); page.Status != http.StatusNotFound {
		t.Errorf("another workspace's version: status %d", page.Status)
	}
	if text := other.Get("/pipeline/history").TestID("versions"); strings.Contains(text, "Version 2") || strings.Contains(text, person.Email) {
		t.Errorf("listed %s", text)
	}
	viewer := person.Colleague(tenants.Viewer)
	for _, path := range []string{"/pipeline/history", "/pipeline/history/1", "/pipeline/yaml"} {
		if page := viewer.Get(path); page.Status != http.StatusOK || page.Has(`main a[href$="/restore"]`) {
			t.Errorf("%s as viewer: status %d", path, page.Status)
		}
	}
}
