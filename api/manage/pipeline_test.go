package manage_test

import (
	"net/http"
	"testing"

	"palimpsest/pipeline/modules/ipc"
)

// savedPipeline is the part of an answer that the tests look at.
type savedPipeline struct {
	Pipeline struct {
		Modules []string
		IPC     struct {
			TargetUtilization float64
			PreserveLastTurns int
		}
	}
	Sources map[string]string
	Version int
	YAML    string
}

func (w *tenant) savePipeline(t *testing.T, media, body string, header ...string) reply {
	t.Helper()
	return w.send(t, http.MethodPut, "/pipeline", body, append([]string{"Content-Type", media}, header...)...)
}

func TestAPipelineIsSavedInYAMLAndInJSON(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	var got savedPipeline
	answer := w.send(t, http.MethodGet, "/pipeline", "")
	answer.want(t, http.StatusOK)
	answer.decode(t, &got)
	if got.Version != 0 || got.Pipeline.IPC.TargetUtilization != ipc.DefaultConfig().TargetUtilization || got.Sources["ipc.targetUtilization"] != "default" || answer.header.Get("ETag") != `"0"` {
		t.Errorf("before anything is saved: %s", answer.body)
	}
	const document = "# why: our sessions are long\nipc:\n  targetUtilization: 0.5\n"
	for version, media := range []string{"application/yaml", "application/x-yaml; charset=utf-8", "text/yaml"} {
		saved := w.savePipeline(t, media, document)
		saved.want(t, http.StatusOK)
		saved.decode(t, &got)
		if got.Version != version+1 || got.YAML != document || got.Pipeline.IPC.TargetUtilization != 0.5 || got.Pipeline.IPC.PreserveLastTurns != 5 ||
			got.Sources["ipc.targetUtilization"] != "workspace" || got.Sources["ipc.preserveLastTurns"] != "default" {
			t.Errorf("saved as %s: %s", media, saved.body)
		}
	}
	w.savePipeline(t, "application/json", `{"modules":["ipc"],"ipc":{"preserveLastTurns":9}}`).want(t, http.StatusOK)
	answer = w.send(t, http.MethodGet, "/pipeline", "")
	got = savedPipeline{}
	answer.decode(t, &got)
	if got.Version != 4 || got.Pipeline.IPC.PreserveLastTurns != 9 || got.Pipeline.IPC.TargetUtilization != ipc.DefaultConfig().TargetUtilization || len(got.Pipeline.Modules) != 1 ||
		answer.header.Get("ETag") != `"4"` {
		t.Errorf("after the fourth: %s", answer.body)
	}
}

func TestAWrongPipelineNamesTheValueAndIsNotSaved(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for body, field := range map[string]string{
		`{"ipc":{"targetUtilization":1.5}}`:    "ipc.targetUtilization",
		`{"ipc":{"targetUtilization":"high"}}`: "ipc.targetUtilization",
		`{"ipc":{"targetUtilisation":0.5}}`:    "ipc.targetUtilisation",
		`{"ipx":{}}`:                           "ipx",
		`{"modules":["ipc","telepathy"]}`:      "modules",
		`{"rehydrator":{"scope":"everybody"}}`: "rehydrator.scope",
		`{"ipc":{"compressTo":0.8}}`:           "ipc.compressTo",
	} {
		answer := w.savePipeline(t, "application/json", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
	w.savePipeline(t, "text/plain", "ipc: {}").want(t, http.StatusUnsupportedMediaType)
	var got savedPipeline
	w.send(t, http.MethodGet, "/pipeline", "").decode(t, &got)
	if got.Version != 0 {
		t.Errorf("version %d was saved", got.Version)
	}
}

func TestAPipelineIsNotSavedOverSomebodyElses(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	w.savePipeline(t, "application/json", `{}`, "If-Match", `"0"`).want(t, http.StatusOK)
	w.savePipeline(t, "application/json", `{}`, "If-Match", `"0"`).want(t, http.StatusConflict)
	w.savePipeline(t, "application/json", `{}`, "If-Match", `"1"`).want(t, http.StatusOK)
	w.savePipeline(t, "application/json", `{}`, "If-Match", `*`).want(t, http.StatusOK)
	w.savePipeline(t, "application/json", `{}`, "If-Match", `"one"`).want(t, http.StatusUnprocessableEntity)
}
