package manage_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive/export"
	"palimpsest/tenants"
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

// E2: several sessions are one file that verifies without us; each is noted.
func TestSeveralSessionsAreExportedAsOneFile(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, other := p.tenant(t, "ant"), p.tenant(t, "bee")
	second := a.another(t)
	before, _ := a.audited(t)
	answer := a.send(t, http.MethodGet, "/sessions/export?id="+a.session.String()+"&id="+second.String()+"&id="+a.session.String(), "")
	answer.want(t, http.StatusOK)
	totals, err := export.Verify(bytes.NewReader(answer.body), func(fault export.Fault) { t.Error(fault) })
	if err != nil || totals.Sessions != 2 || totals.Messages != len(a.messages) {
		t.Errorf("totals %+v, %v", totals, err)
	}
	if after, newest := a.audited(t); after != before+2 || newest != tenants.SessionExported {
		t.Errorf("%d rows more, the newest %s", after-before, newest)
	}
	many := url.Values{}
	for range 101 {
		many.Add("id", uuid.NewString())
	}
	for query, status := range map[string]int{
		"": http.StatusUnprocessableEntity, "?id=x": http.StatusUnprocessableEntity, "?" + many.Encode(): http.StatusUnprocessableEntity,
		"?q=a": http.StatusUnprocessableEntity, "?id=" + a.session.String() + "&id=" + other.session.String(): http.StatusNotFound,
	} {
		a.send(t, http.MethodGet, "/sessions/export"+query, "").want(t, status)
	}
	if after, _ := a.audited(t); after != before+2 {
		t.Errorf("what was refused wrote %d rows", after-before-2)
	}
}

// another records a second session of the tenant, of which nothing is archived.
func (w *tenant) another(t *testing.T) uuid.UUID {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	_, err := w.db.Owner(t).Exec(t.Context(), `INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at)
		SELECT workspace_id, $2, api_key_id, format, source, started_at, last_at FROM sessions WHERE workspace_id = $1`, w.workspace, id)
	if err != nil {
		t.Fatal(err)
	}
	return id
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

// E2, S31: a session is exported as a tar of its originals, too, which verifies without
// us, and as a transcript; by anyone who may read it, and noted each time.
func TestASessionIsExportedAsTarAndTranscript(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	tar := w.send(t, http.MethodGet, w.path("/export?format=tar"), "")
	tar.want(t, http.StatusOK)
	if got := tar.header.Get("Content-Type"); got != "application/x-tar" || !strings.Contains(tar.header.Get("Content-Disposition"), ".tar") {
		t.Errorf("the headers are %v", tar.header)
	}
	totals, err := export.VerifyBundle(bytes.NewReader(tar.body), func(fault export.Fault) { t.Error(fault) })
	if err != nil || totals.Sessions != 1 || totals.Messages != len(w.messages) || totals.Files != len(w.messages)+1 {
		t.Errorf("totals %+v of %d messages, %v", totals, len(w.messages), err)
	}

	text := w.send(t, http.MethodGet, w.path("/export?format=markdown"), "")
	text.want(t, http.StatusOK)
	if got := text.header.Get("Content-Type"); got != "text/markdown; charset=utf-8" {
		t.Errorf("the content type is %s", got)
	}
	for _, want := range []string{"### 0 · user · L", "question 3 of ant", "SHA-256 `"} {
		if !bytes.Contains(text.body, []byte(want)) {
			t.Errorf("the transcript lacks %q:\n%s", want, text.body)
		}
	}
	w.send(t, http.MethodGet, w.path("/export?format=pdf"), "").want(t, http.StatusUnprocessableEntity)

	noted := string(w.send(t, http.MethodGet, "/audit?action=session.exported", "").body)
	for _, format := range []string{`"format":"tar"`, `"format":"markdown"`} {
		if strings.Count(noted, format) != 1 {
			t.Errorf("the log holds %s: %s", format, noted)
		}
	}
}

// Every file that is downloaded says what it is called and what it is.
func TestFilesSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	session := w.session.String()
	for path, want := range map[string][2]string{
		w.path("/export?format=ndjson"):   {"palimpsest-session-" + session + ".ndjson", "application/x-ndjson"},
		w.path("/export?format=tar"):      {"palimpsest-session-" + session + ".tar", "application/x-tar"},
		w.path("/export?format=markdown"): {"palimpsest-session-" + session + ".md", "text/markdown; charset=utf-8"},
		"/export":                         {"palimpsest-" + w.workspace.String() + ".tar", "application/x-tar"},
		"/config/export?format=json":      {"palimpsest-config.json", "application/json"},
		"/requests.csv":                   {"palimpsest-requests.csv", "text/csv; charset=utf-8"},
	} {
		answer := w.send(t, http.MethodGet, path, "")
		answer.want(t, http.StatusOK)
		got := [2]string{answer.header.Get("Content-Disposition"), answer.header.Get("Content-Type")}
		if want[0] = `attachment; filename="` + want[0] + `"`; got != want {
			t.Errorf("%s says %q, want %q", path, got, want)
		}
		if kept := answer.header.Get("Cache-Control"); !strings.Contains(kept, "no-store") {
			t.Errorf("%s may be kept: %q", path, kept)
		}
	}
}
