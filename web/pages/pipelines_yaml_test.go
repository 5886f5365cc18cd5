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
	if page := person.Get("/pipeline/yaml"); page.Status != http.StatusOK || !strings.Contains(page.Text("main"), "Empty: every setting has its default") {
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
}
