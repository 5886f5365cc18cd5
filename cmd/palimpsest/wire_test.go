package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/wire/sessiontest"
)

// W37: what a batch holds is sent later, by the provider: it goes out as it came.
func TestBatchesAreNotEdited(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{KeepBodies: 1})
	w := i.tenant("batch")
	w.setPipelinef("ipc:\n  contextWindow: 20000\n")
	body := fmt.Appendf(nil, `{"requests":[{"custom_id":"a","params":%s}], "n":1e400}`, generated(i.double, 40))

	response, answer := w.post("/v1/messages/batches", body, nil)

	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", response.StatusCode, answer)
	}
	if last, _ := i.double.Last(); last.Path != "/v1/messages/batches" || !bytes.Equal(last.Body, body) {
		t.Errorf("%s: %d bytes, sent %d", last.Path, len(last.Body), len(body))
	}
}

// W29, W30: on models that bind thinking a session lives on behind its epochs, and
// the client is told what the provider dropped; where nothing can be dropped, no
// thinking is sent.
func TestTheClientIsToldOfDroppedThinking(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{Window: 40_000, BindThinking: true, KeepBodies: 1})
	w := i.tenant("dropped")
	w.setPipelinef("ipc:\n  contextWindow: 40000\n")
	for name, test := range map[string]struct {
		model, setting string
		stream         bool
		told           bool
	}{
		"dropped":           {"claude-opus-5-5", "", false, true},
		"dropped, streamed": {"claude-opus-5-5", "none", true, true},
		"stripped":          {"claude-sonnet-5-5", `{"type":"between_tools"}`, false, false},
	} {
		session := sessiontest.Generate(4, sessiontest.Options{
			Model: test.model, Turns: 50, Parallel: true, Thinking: true, TargetTokens: 60_000, Signer: i.double, ThinkingSetting: test.setting, Stream: test.stream,
			Bind: func(head []byte) (sessiontest.Binder, error) { return i.double.Bind(head) },
		})
		edited, news := false, false
		for step, body := range session.Bodies() {
			response, answer := w.post("/v1/messages", body, map[string]string{"X-Session-Id": name, "Anthropic-Beta": "nobody-knows-2027-01-01"})
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s, request %d: status %d: %s", name, step+1, response.StatusCode, answer)
			}
			edited = edited || response.Header.Get("X-Palimpsest-Archived") != "0"
			told := strings.Contains(string(answer), `"input_transformations":[{"type":"thinking_dropped","path":"messages.`)
			if told && (!edited || !test.told) {
				t.Fatalf("%s, request %d, edited %v: %.500s", name, step+1, edited, answer)
			}
			last, _ := i.double.Last()
			if edited && !test.told && bytes.Contains(last.Body, []byte(`"signature"`)) {
				t.Fatalf("%s, request %d: thinking was sent", name, step+1)
			}
			want := "nobody-knows-2027-01-01"
			if edited && test.told {
				want += ",thinking-binding-controls-2026-08-01"
			}
			if betas := strings.Join(last.Header.Values("Anthropic-Beta"), ","); betas != want {
				t.Fatalf("%s, request %d: the provider gets the betas %s, want %s", name, step+1, betas, want)
			}
			news = news || told
		}
		if !edited || news != test.told {
			t.Errorf("%s: edited %v, told %v", name, edited, news)
		}
	}
}
