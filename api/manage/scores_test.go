package manage_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// judge scores and labels the tenant's session, so that both can be removed.
func (w *tenant) judge(t *testing.T) {
	t.Helper()
	w.send(t, http.MethodPut, w.path("/score"), `{"score":1}`).want(t, http.StatusOK)
	w.send(t, http.MethodPut, w.path("/labels/kept"), "").want(t, http.StatusNoContent)
}

func TestScoresAndLabelsAreSetListedAndRemoved(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	w.setPolicy(t, tenants.ReadsAll, tenants.ReadsAll, tenants.ReadsNone)
	member, viewer := w.colleague(t, tenants.Regular), w.colleague(t, tenants.Viewer)
	member.session, viewer.session = w.session, w.session

	w.send(t, http.MethodPut, w.path("/score"), `{"score":-1}`).want(t, http.StatusOK)
	w.send(t, http.MethodPut, w.path("/score"), `{"score":1,"note":"Fixed it. Key sk-ant-0123456789abcdef"}`).want(t, http.StatusOK)
	member.send(t, http.MethodPut, w.path("/score"), `{"score":-1}`).want(t, http.StatusOK)
	var listed struct {
		Data []struct {
			Score int
			Note  string
			Email string `json:"author_email"`
		}
	}
	w.send(t, http.MethodGet, w.path("/scores"), "").decode(t, &listed)
	if len(listed.Data) != 2 || listed.Data[0].Score != 1 || listed.Data[0].Note != "Fixed it. Key [redacted]" || listed.Data[1].Score != -1 {
		t.Fatalf("the scores are %+v", listed)
	}
	w.send(t, http.MethodPut, w.path("/labels/refund%%20bug"), "").want(t, http.StatusNoContent)
	w.send(t, http.MethodPut, w.path("/labels/refund%%20bug"), "").want(t, http.StatusNoContent)
	for body, field := range map[string]string{`{"score":2}`: "score", `{"score":1,"note":"` + strings.Repeat("é", tenants.MaxNote+1) + `"}`: "note"} {
		answer := w.send(t, http.MethodPut, w.path("/score"), body)
		answer.want(t, http.StatusUnprocessableEntity)
		if answer.field(t) != field {
			t.Errorf("%.40s: the field is %s", body, answer.field(t))
		}
	}
	w.send(t, http.MethodPut, w.path("/labels/%s", strings.Repeat("x", tenants.MaxLabel+1)), "").want(t, http.StatusUnprocessableEntity)
	viewer.send(t, http.MethodPut, w.path("/score"), `{"score":1}`).want(t, http.StatusForbidden)
	viewer.send(t, http.MethodGet, w.path("/scores"), "").want(t, http.StatusForbidden)

	type one struct {
		Labels   []string
		Up, Down int
	}
	read := func(of *tenant) one {
		var shown struct {
			Labels []string
			Up     int `json:"scores_up"`
			Down   int `json:"scores_down"`
		}
		of.send(t, http.MethodGet, w.path(""), "").decode(t, &shown)
		return one{shown.Labels, shown.Up, shown.Down}
	}
	if got := read(w); len(got.Labels) != 1 || got.Labels[0] != "refund bug" || got.Up != 1 || got.Down != 1 {
		t.Errorf("the session says %+v", got)
	}
	if got := read(viewer); len(got.Labels) != 0 || got.Up != 0 || got.Down != 0 {
		t.Errorf("a viewer who may not read it learns %+v", got)
	}
	for query, want := range map[string]int{"?label=refund%20bug": 1, "?label=refund": 0, "?score=up": 1, "?score=down": 1, "?label=refund%20bug&score=up&q=zzz": 0} {
		var page struct{ Data []struct{ ID string } }
		w.send(t, http.MethodGet, "/sessions"+query, "").decode(t, &page)
		if len(page.Data) != want {
			t.Errorf("%s lists %d sessions, want %d", query, len(page.Data), want)
		}
		viewer.send(t, http.MethodGet, "/sessions"+query, "").decode(t, &page)
		if len(page.Data) != 0 {
			t.Errorf("%s: a viewer who may not read it finds it", query)
		}
	}
	w.send(t, http.MethodGet, "/sessions?score=best", "").want(t, http.StatusUnprocessableEntity)

	member.send(t, http.MethodDelete, w.path("/score"), "").want(t, http.StatusNoContent)
	member.send(t, http.MethodDelete, w.path("/labels/refund%%20bug"), "").want(t, http.StatusNoContent)
	if got := read(w); len(got.Labels) != 0 || got.Up != 1 || got.Down != 0 {
		t.Errorf("afterwards the session says %+v", got)
	}
}

// A data set has a line for each session: its messages as they came, and what people say about it.
func TestSessionsAreExportedAsADataSet(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	w.send(t, http.MethodPut, w.path("/score"), `{"score":1,"note":"As it should be."}`).want(t, http.StatusOK)
	w.send(t, http.MethodPut, w.path("/labels/good"), "").want(t, http.StatusNoContent)
	type example struct {
		Session, Model, Damage string
		Labels                 []string
		Scores                 []struct {
			By    string
			Score int
			Note  string
		}
		Comments []struct{ Text string }
		Messages []json.RawMessage
	}
	read := func(path string) []example {
		answer := w.send(t, http.MethodGet, path, "")
		answer.want(t, http.StatusOK)
		var all []example
		for line := range strings.Lines(string(answer.body)) {
			var one example
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			all = append(all, one)
		}
		return all
	}
	all := read("/sessions/export?format=jsonl&id=" + w.session.String())
	if len(all) != 1 || all[0].Session != w.session.String() || all[0].Damage != "" || len(all[0].Messages) < len(w.messages) {
		t.Fatalf("the data set is %+v", all)
	}
	if one := all[0]; len(one.Labels) != 1 || len(one.Comments) != 1 || len(one.Scores) != 1 || one.Scores[0].By != "ant@example.com" || one.Scores[0].Note != "As it should be." {
		t.Errorf("what people say is %+v", one)
	}
	if cut := read(w.path("/export?format=jsonl&at=1")); len(cut) != 1 || len(cut[0].Messages) != 2 {
		t.Errorf("up to message 1 there are %d messages", len(cut[0].Messages))
	}
	for path, field := range map[string]string{w.path("/export?at=1"): "at", w.path("/export?format=jsonl&at=-1"): "at", w.path("/export?format=csv"): "format"} {
		answer := w.send(t, http.MethodGet, path, "")
		answer.want(t, http.StatusUnprocessableEntity)
		if answer.field(t) != field {
			t.Errorf("%s: the field is %s", path, answer.field(t))
		}
	}
}
