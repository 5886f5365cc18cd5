package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// pattern is what the API says of a pattern.
type pattern struct {
	ID, Kind, Text, Status string
	Version                int
	When                   struct {
		Terms, Paths, Signatures []string
		Always                   bool
	}
	CreatedBy string `json:"created_by"`
	EditedBy  string `json:"edited_by"`
}

func TestPatternIsAddedListedEditedAndDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	answer := w.send(t, http.MethodPost, "/patterns", `{"kind":"directive","text":"The  fix is to import stream.","when":{"signatures":["relay.go:42:7: undefined: flushInterval"],"terms":["Relays"]}}`)
	answer.want(t, http.StatusCreated)
	var added pattern
	answer.decode(t, &added)
	if added.Text != "The fix is to import stream." || added.Status != "approved" || added.CreatedBy == "" || added.Version != 1 || answer.header.Get("ETag") != `"1"` {
		t.Errorf("added %+v", added)
	}
	if len(added.When.Signatures) != 1 || strings.Contains(added.When.Signatures[0], "42") || strings.Join(added.When.Terms, ",") != "relay" {
		t.Errorf("looked for as %+v", added.When)
	}
	answer = w.send(t, http.MethodPatch, "/patterns/"+added.ID, `{"status":"disabled","text":"Import stream."}`, "If-Match", `"1"`)
	answer.want(t, http.StatusOK)
	var changed pattern
	answer.decode(t, &changed)
	if changed.Status != "disabled" || changed.Text != "Import stream." || changed.Version != 2 || changed.EditedBy == "" || len(changed.When.Signatures) != 1 {
		t.Errorf("changed to %+v", changed)
	}
	answer = w.send(t, http.MethodPatch, "/patterns/"+added.ID, `{"status":"approved"}`, "If-Match", `"1"`)
	answer.want(t, http.StatusConflict)
	w.send(t, http.MethodGet, "/patterns/"+added.ID, "").want(t, http.StatusOK)
	w.send(t, http.MethodDelete, "/patterns/"+added.ID, "").want(t, http.StatusNoContent)
	w.send(t, http.MethodGet, "/patterns/"+added.ID, "").want(t, http.StatusNotFound)
}

func TestPatternsAreListedPageByPageAndByStatus(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	for i, name := range []string{"alpha", "beta", "gamma"} {
		answer := w.send(t, http.MethodPost, "/patterns", fmt.Sprintf(`{"kind":"convention","text":"We use %s, not delta."}`, name))
		answer.want(t, http.StatusCreated)
		var added pattern
		answer.decode(t, &added)
		if i == 0 {
			w.send(t, http.MethodPatch, "/patterns/"+added.ID, `{"status":"disabled"}`).want(t, http.StatusOK)
		}
	}
	type list struct {
		Data []pattern
		Next string `json:"next_cursor"`
	}
	var first, second, disabled list
	w.send(t, http.MethodGet, "/patterns?limit=2", "").decode(t, &first)
	w.send(t, http.MethodGet, "/patterns?limit=2&cursor="+first.Next, "").decode(t, &second)
	w.send(t, http.MethodGet, "/patterns?status=disabled", "").decode(t, &disabled)
	if len(first.Data) != 2 || !strings.Contains(first.Data[0].Text, "gamma") || len(second.Data) != 1 || second.Next != "" || second.Data[0].Status != "disabled" {
		t.Errorf("pages are %+v and %+v", first, second)
	}
	if len(disabled.Data) != 1 || disabled.Data[0].ID != second.Data[0].ID {
		t.Errorf("disabled are %+v", disabled)
	}
}

func TestFaultyPatternsAreRefusedWithTheFieldAtFault(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	for body, field := range map[string]string{
		`{"kind":"fix","text":"We use pnpm."}`:                                                             "kind",
		`{"kind":"rule","text":"We use pnpm."}`:                                                            "kind",
		`{"kind":"directive","text":" "}`:                                                                  "text",
		`{"kind":"directive","text":"` + strings.Repeat("word ", 70) + `"}`:                                "text",
		`{"kind":"directive","text":"Set API_KEY=sk-live-0123456789abcdef in the file."}`:                  "text",
		`{"kind":"directive","text":"We use pnpm.","when":{}}`:                                             "when",
		`{"kind":"directive","text":"We use pnpm.","when":{"signatures":["all is well"]}}`:                 "when.signatures",
		`{"kind":"directive","text":"We use pnpm.","when":{"paths":[""]}}`:                                 "when.paths",
		`{"kind":"directive","text":"We use pnpm.","when":{"terms":["` + strings.Repeat("x", 200) + `"]}}`: "when.terms",
		`{"kind":"directive","text":"We use pnpm.","status":"approved"}`:                                   "status",
	} {
		answer := w.send(t, http.MethodPost, "/patterns", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
	for _, query := range []string{"status=seen", "status=candidate", "cursor=x", "limit=0", "sort=text"} {
		w.send(t, http.MethodGet, "/patterns?"+query, "").want(t, http.StatusUnprocessableEntity)
	}
	w.send(t, http.MethodPost, "/patterns", `{"kind":"directive","text":"We use pnpm."}`).want(t, http.StatusCreated)
	w.send(t, http.MethodPost, "/patterns", `{"kind":"directive","text":"we use PNPM!"}`).want(t, http.StatusCreated)
	var all struct{ Data []pattern }
	w.send(t, http.MethodGet, "/patterns", "").decode(t, &all)
	if len(all.Data) != 1 || all.Data[0].Text != "we use PNPM!" {
		t.Errorf("the same words make %+v", all.Data)
	}
}
