package manage_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/archive/export"
)

// E2, S31: an export holds everything and verifies without us.
func TestAnExportedSessionVerifies(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	answer := w.send(t, http.MethodGet, w.path("/export"), "")
	answer.want(t, http.StatusOK)
	if got := answer.header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("the content type is %s", got)
	}
	totals, err := export.Verify(bytes.NewReader(answer.body), func(fault export.Fault) { t.Error(fault) })
	if err != nil || totals.Sessions != 1 || totals.Messages != len(w.messages) {
		t.Errorf("totals %+v, %v:\n%s", totals, err, answer.body)
	}
	for _, want := range []string{"question 3 of ant", "answer 2", `"type":"projection"`, w.lane.String()} {
		if !bytes.Contains(answer.body, []byte(want)) {
			t.Errorf("the export lacks %q", want)
		}
	}
	cut := answer.body[:bytes.LastIndexByte(bytes.TrimSpace(answer.body), '\n')+1]
	faults := 0
	if _, err := export.Verify(bytes.NewReader(cut), func(export.Fault) { faults++ }); err != nil || faults == 0 {
		t.Errorf("cut off, it verifies (%v)", err)
	}
	w.send(t, http.MethodGet, w.path("/export?lane=x"), "").want(t, http.StatusUnprocessableEntity)
}

func TestRetentionIsKeptAndChecked(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	for _, step := range []struct {
		method, body string
		status       int
		want         string
	}{
		{http.MethodGet, "", http.StatusOK, `{"days":0}`},
		{http.MethodPut, `{"days":90}`, http.StatusOK, `{"days":90}`},
		{http.MethodGet, "", http.StatusOK, `{"days":90}`},
		{http.MethodPut, `{"days":-1}`, http.StatusUnprocessableEntity, `"field":"days"`},
		{http.MethodPut, `{"days":36501}`, http.StatusUnprocessableEntity, `"field":"days"`},
		{http.MethodPut, `{}`, http.StatusUnprocessableEntity, `"field":"days"`},
		{http.MethodPut, `{"days":0}`, http.StatusOK, `{"days":0}`},
	} {
		answer := w.send(t, step.method, "/retention", step.body)
		answer.want(t, step.status)
		if !strings.Contains(string(answer.body), step.want) {
			t.Errorf("%s %s: %s, want %s", answer.request, step.body, answer.body, step.want)
		}
	}
}
