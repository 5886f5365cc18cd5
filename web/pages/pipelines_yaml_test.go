package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

func TestThePipelineIsShownAndDownloadedAsYAML(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if page := person.Get("/pipeline/yaml"); page.Status != http.StatusOK || !strings.Contains(page.Text("main"), "Nothing is set") {
		t.Fatalf("status %d: %s", page.Status, page.Text("main"))
	}
	pipelinesSave(t, person, 0, tenants.PipelineConfig{Modules: "patterns,ipc", YAML: "# why\nipc:\n  targetUtilization: 0.6 # in <May>\n"})

	page := person.Get("/pipeline/yaml")
	const want = "# why\nipc:\n  targetUtilization: 0.6 # in <May>\nmodules: [patterns, ipc]\n"
	if got := page.Find("#pipeline-yaml").Text(); got != want {
		t.Errorf("shown %q", got)
	}
	if !page.Has("#pipeline-yaml .chroma .nt") || !page.Has(`button[data-copy="pipeline-yaml"]`) || !strings.Contains(page.Text("main"), "Version 1, current") {
		t.Error("it is not highlighted, or cannot be copied")
	}
	file := person.Get(page.Find("a[download]").AttrOr("href", ""))
	if file.HTML != want || !strings.Contains(file.Header.Get("Content-Disposition"), `filename="pipeline.yaml"`) || !strings.HasPrefix(file.Header.Get("Content-Type"), "application/yaml") {
		t.Errorf("downloaded %q, %v", file.HTML, file.Header)
	}

	whole := person.Get("/pipeline/yaml?show=all")
	if text := whole.Find("#pipeline-yaml").Text(); !strings.Contains(text, "targetUtilization: 0.6") || !strings.Contains(text, "ttlSeconds: 3600") {
		t.Errorf("every setting is %q", text)
	}
	if file := person.Get(whole.Find("a[download]").AttrOr("href", "")); !strings.Contains(file.HTML, "ttlSeconds: 3600") {
		t.Errorf("downloaded %q", file.HTML)
	}
}

func TestPipelineThatWasSavedAsJSONIsShownAsYAML(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	pipelinesSave(t, person, 0, tenants.PipelineConfig{YAML: `{"ipc":{"compressTo":0.35,"targetUtilization":0.6},"modules":["ipc","patterns"],"rehydrator":{"triggerPhrases":["as: before","true"]}}`})

	const want = "ipc:\n  compressTo: 0.35\n  targetUtilization: 0.6\nmodules: [ipc, patterns]\nrehydrator:\n  triggerPhrases: ['as: before', \"true\"]\n"
	if got := person.Get("/pipeline/yaml").Find("#pipeline-yaml").Text(); got != want {
		t.Errorf("shown %q", got)
	}
	edit := person.Get("/pipeline/yaml/edit").Find("textarea").Text()
	if strings.TrimSpace(edit) != strings.TrimSpace(want) {
		t.Errorf("edited is %q", edit)
	}
	if same := person.Post("/pipeline/yaml", "version", "1", "yaml", edit); same.Path != "/pipeline/yaml?saved=same" {
		t.Errorf("what was not changed leads to %s", same.Path)
	}
}

func TestYAMLIsSavedAsItWasTyped(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if typed := person.Get("/pipeline/yaml/edit?from=all").Find("textarea").Text(); !strings.Contains(typed, "targetUtilization: 0.8") {
		t.Errorf("every setting starts from %q", typed)
	}
	saved := person.Post("/pipeline/yaml", "version", "0", "yaml", "# ours\r\nmodules: [ipc]\r\nipc:\r\n  minClear: 0.2\r\n")
	if saved.Path != "/pipeline/yaml?saved=1" || !strings.Contains(saved.TestID("done"), "Version 1 is saved") {
		t.Fatalf("saving led to %s: %s", saved.Path, saved.Text("main"))
	}
	now := newest(t, person)
	if now.YAML != "# ours\nmodules: [ipc]\nipc:\n  minClear: 0.2\n" || now.Modules != "" || now.SavedBy != person.User.ID {
		t.Errorf("saved %+v", now)
	}
	if same := person.Post("/pipeline/yaml", "version", "1", "yaml", now.YAML); !strings.Contains(same.TestID("done"), "Nothing was changed") || newest(t, person).Version != 1 {
		t.Errorf("the same led to %s", same.Path)
	}
	// The page on which settings are set shows it, and keeps what it does not show.
	if page := person.Get("/pipeline"); page.Status != http.StatusOK {
		t.Errorf("status %d", page.Status)
	}
}

func TestEveryErrorIsShownAtItsLine(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for typed, wants := range map[string][]string{
		"ipc:\n  targetUtilisation: 0.5\n  minClear: 7\n  deepestLevel: deep\n  minClear: 0.2\n": {
			"4 errors. Nothing was saved", "Line 2 targetUtilisation: 0.5", "Did you mean targetUtilization?", "Line 3 minClear: 7", "0.01 to 0.50",
			"Line 4 deepestLevel: deep", `"deep" must be a whole number`, "Line 5 minClear: 0.2", "is set twice, first on line 3",
		},
		"ipc:\n  minClear: 0.2\n compressTo: 0.3\n": {"1 error.", "Line 3 compressTo: 0.3", "indent the line as those beside it"},
		"modules: ipc\n# <b>\nipc: [":               {"Line 3 ipc: [", "close the bracket"},
	} {
		page := person.Post("/pipeline/yaml", "version", "0", "yaml", strings.ReplaceAll(typed, "\n", "\r\n"))
		if page.Status != http.StatusUnprocessableEntity || strings.TrimPrefix(page.Find("textarea").Text(), "\n") != typed || page.Find("textarea").AttrOr("aria-describedby", "") != "faults" {
			t.Errorf("%q: status %d, typed is %q", typed, page.Status, page.Find("textarea").Text())
		}
		for _, want := range wants {
			if text := page.TestID("faults"); !strings.Contains(text, want) {
				t.Errorf("%q: %q is not in %s", typed, want, text)
			}
		}
	}
	if now := newest(t, person); now.Version != 0 {
		t.Errorf("version %d was saved", now.Version)
	}
}

func TestYAMLIsNotSavedOverSomebodyElses(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	pipelinesSave(t, person, 0, tenants.PipelineConfig{YAML: "ipc:\n  minClear: 0.3\n"})
	const mine = "ipc:\n  minClear: 0.2\n"

	page := person.Post("/pipeline/yaml", "version", "0", "yaml", mine)
	if page.Status != http.StatusConflict || !strings.Contains(page.TestID("conflict"), "saved by "+person.Email) || !strings.Contains(page.TestID("differ"), "ipc.minClear 0.3 0.2") {
		t.Fatalf("status %d: %s", page.Status, page.Text("main"))
	}
	if !strings.Contains(page.Text("#their-yaml"), "minClear: 0.3") || !strings.Contains(page.Find("textarea").Text(), "minClear: 0.2") || !page.Has(`[data-testid="diff"] ins`) {
		t.Error("not both texts are shown")
	}
	if newest(t, person).YAML != "ipc:\n  minClear: 0.3\n" {
		t.Error("it was saved over")
	}
	over := person.Post("/pipeline/yaml", "version", page.Find("input[name=version]").AttrOr("value", ""), "yaml", mine)
	if over.Path != "/pipeline/yaml?saved=2" || newest(t, person).YAML != mine {
		t.Errorf("saving over it led to %s", over.Path)
	}
	if page := person.Post("/pipeline/yaml", "yaml", mine); page.Status != http.StatusBadRequest {
		t.Errorf("without a version: status %d", page.Status)
	}
}
