package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// version is a saved version as the API lists it.
type version struct {
	Version int
	InForce bool `json:"in_force"`
	Author  string
	YAML    string
	Changes []struct{ Field, Before, After string }
	Error   string
}

func (w *tenant) versions(t *testing.T, query string) (list []version, next string) {
	t.Helper()
	answer := w.send(t, http.MethodGet, "/pipeline/versions"+query, "")
	answer.want(t, http.StatusOK)
	var page struct {
		Data []version
		Next string `json:"next_cursor"`
	}
	answer.decode(t, &page)
	return page.Data, page.Next
}

func TestVersionsTellWhatEachChangedAndWhoSavedIt(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	if none, next := w.versions(t, ""); len(none) != 0 || next != "" {
		t.Errorf("before anything is saved: %+v", none)
	}
	_, key := w.createKey(t, "manage")
	w.savePipeline(t, "application/yaml", "ipc: {minClear: 0.2}").want(t, http.StatusOK)
	w.sendWith(t, key, http.MethodPut, "/pipeline", `{"modules":["ipc"],"ipc":{"minClear":0.3}}`).want(t, http.StatusOK)
	w.savePipeline(t, "application/yaml", "modules: [ipc]\nipc: {minClear: 0.3} # measured\n").want(t, http.StatusOK)

	page, next := w.versions(t, "?limit=2")
	if len(page) != 2 || next != "2" || !page[0].InForce || page[1].InForce || page[0].Author != "ada@example.com" || page[1].Author != "for manage" {
		t.Fatalf("first page %+v, next %q", page, next)
	}
	if len(page[0].Changes) != 0 || !strings.Contains(page[0].YAML, "# measured") {
		t.Errorf("a comment is no change: %+v", page[0])
	}
	if got := fmt.Sprint(page[1].Changes); got != "[{modules [ipc, compaction-bridge, rehydrator, patterns] [ipc]} {ipc.minClear 0.2 0.3}]" {
		t.Error(got)
	}
	last, next := w.versions(t, "?limit=2&cursor="+next)
	if len(last) != 1 || next != "" || last[0].InForce || fmt.Sprint(last[0].Changes) != "[{ipc.minClear 0.1 0.2}]" {
		t.Errorf("last page %+v, next %q", last, next)
	}
	w.send(t, http.MethodGet, "/pipeline/versions?cursor=x", "").want(t, http.StatusUnprocessableEntity)
}

// S3, S32
func TestRestoringAVersionMakesTheNextVersion(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w, other := p.member(t, "ada"), p.member(t, "eve")
	for _, share := range []string{"0.2", "0.3"} {
		w.savePipeline(t, "application/yaml", "ipc: {minClear: "+share+"}").want(t, http.StatusOK)
	}
	other.send(t, http.MethodPost, "/pipeline/versions/1/restore", "").want(t, http.StatusNotFound)
	w.send(t, http.MethodPost, "/pipeline/versions/7/restore", "").want(t, http.StatusNotFound)
	w.send(t, http.MethodPost, "/pipeline/versions/one/restore", "").want(t, http.StatusNotFound)
	w.send(t, http.MethodPost, "/pipeline/versions/2/restore", "").want(t, http.StatusUnprocessableEntity)
	w.send(t, http.MethodPost, "/pipeline/versions/1/restore", "", "If-Match", `"1"`).want(t, http.StatusConflict)
	before, _ := w.audited(t)

	var got savedPipeline
	answer := w.send(t, http.MethodPost, "/pipeline/versions/1/restore", "", "If-Match", `"2"`)
	answer.want(t, http.StatusOK)
	answer.decode(t, &got)
	if got.Version != 3 || got.YAML != "ipc: {minClear: 0.2}" || answer.header.Get("ETag") != `"3"` {
		t.Errorf("restored %s", answer.body)
	}
	if after, newest := w.audited(t); after != before+1 || newest != tenants.PipelineRestored {
		t.Errorf("%d rows more, the newest %s", after-before, newest)
	}
}

func TestAVersionThatIsNoLongerAcceptedSaysWhyAndIsNotRestored(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for version, yaml := range []string{"ipc:\n  warpSpeed: 9\n", "ipc: {minClear: 0.3}"} {
		if _, err := w.db.DB.Pipelines.SavePipeline(t.Context(), w.workspace, version, tenants.PipelineConfig{YAML: yaml}); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := w.versions(t, "")
	if len(list) != 2 || !strings.Contains(list[1].Error, "line 2: ipc.warpSpeed: is unknown") || list[0].Error != "" {
		t.Errorf("listed %+v", list)
	}
	answer := w.send(t, http.MethodPost, "/pipeline/versions/1/restore", "")
	answer.want(t, http.StatusUnprocessableEntity)
	if answer.field(t) != "ipc.warpSpeed" {
		t.Errorf("answered %s", answer.body)
	}
	if list, _ := w.versions(t, ""); len(list) != 2 {
		t.Errorf("%d versions", len(list))
	}
}

func TestEveryFaultOfASavedPipelineHasItsLine(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	answer := w.savePipeline(t, "application/yaml", "# ours\nipc:\n  targetUtilisation: 0.5\n  minClear: 7\n")
	answer.want(t, http.StatusUnprocessableEntity)
	var problem struct {
		Field  string
		Line   int
		Errors []struct {
			Field, Message string
			Line           int
		}
	}
	answer.decode(t, &problem)
	if problem.Field != "ipc.targetUtilisation" || problem.Line != 3 || len(problem.Errors) != 2 || problem.Errors[1].Line != 4 || problem.Errors[1].Field != "ipc.minClear" {
		t.Errorf("answered %s", answer.body)
	}
	if !strings.Contains(problem.Errors[0].Message, "Did you mean targetUtilization?") {
		t.Error(problem.Errors[0].Message)
	}
}
