package manage_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

type modelWindow struct {
	Model  string
	Tokens int `json:"window_tokens"`
	Source string
	SetBy  string    `json:"set_by"`
	SetAt  time.Time `json:"set_at"`
}

func (w *tenant) modelWindows(t *testing.T) []modelWindow {
	t.Helper()
	answer := w.send(t, http.MethodGet, "/models/windows", "")
	answer.want(t, http.StatusOK)
	var list struct{ Data []modelWindow }
	answer.decode(t, &list)
	return list.Data
}

func TestTheWindowOfAModelIsSetAndTakenBack(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	if len(w.modelWindows(t)) != 0 {
		t.Error("a new workspace has windows of its own")
	}
	for _, model := range []string{"gpt-5.5", "someone%2Ftheir-model-7b", "claude-sonnet-4-5[1m]"} {
		answer := w.send(t, http.MethodPut, "/models/windows/"+model, `{"window_tokens":64000}`)
		answer.want(t, http.StatusOK)
		var set modelWindow
		answer.decode(t, &set)
		if set.Model != strings.ReplaceAll(model, "%2F", "/") || set.Tokens != 64_000 || set.Source != "override" || set.SetBy == "" || set.SetAt.IsZero() {
			t.Errorf("%s: %s", model, answer.body)
		}
	}
	w.send(t, http.MethodPut, "/models/windows/gpt-5.5", `{"window_tokens":32000}`).want(t, http.StatusOK)
	windows := w.modelWindows(t)
	if len(windows) != 3 || windows[1].Model != "gpt-5.5" || windows[1].Tokens != 32_000 || windows[2].Model != "someone/their-model-7b" {
		t.Errorf("windows: %+v", windows)
	}
	w.send(t, http.MethodDelete, "/models/windows/someone%2Ftheir-model-7b", "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, "/models/windows/someone%2Ftheir-model-7b", "").want(t, http.StatusNotFound)
	if len(w.modelWindows(t)) != 2 {
		t.Errorf("after one was deleted: %+v", w.modelWindows(t))
	}
}

func TestLearntWindowsAreShownAsSuch(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	if err := w.db.DB.ModelWindows.LearnModelWindow(t.Context(), w.workspace, "new-model", 8192); err != nil {
		t.Fatal(err)
	}
	windows := w.modelWindows(t)
	if len(windows) != 1 || windows[0].Source != "learnt" || windows[0].Tokens != 8192 || windows[0].SetBy != "" {
		t.Errorf("windows: %+v", windows)
	}
	w.send(t, http.MethodDelete, "/models/windows/new-model", "").want(t, http.StatusNoContent)
}

func TestAWrongWindowIsRefusedByName(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for body, field := range map[string]string{
		`{"window_tokens":0}`: "window_tokens", `{"window_tokens":-5}`: "window_tokens", `{}`: "window_tokens",
		`{"window_tokens":100000001}`: "window_tokens", `{"window_tokens":"64k"}`: "window_tokens", `{"window":64000}`: "window",
	} {
		answer := w.send(t, http.MethodPut, "/models/windows/gpt-5.5", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
	long := w.send(t, http.MethodPut, "/models/windows/"+strings.Repeat("x", 201), `{"window_tokens":64000}`)
	long.want(t, http.StatusUnprocessableEntity)
	if long.field(t) != "model" {
		t.Errorf("a name that is too long: %s", long.body)
	}
}
