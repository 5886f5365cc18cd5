package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/pipeline/wire/sessiontest"
)

// A session of 300 turns with everything that real ones have, through the real
// program with a window of 100,000 tokens: no request is refused, in any format.
// A1, A2, A7, A13, B14, C2, E2
func TestLongSessionsNeverFail(t *testing.T) {
	t.Parallel()
	for format, path := range endpoints() {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			fulltest.Turn(t, 3)
			i := start(t, providerdouble.Config{Window: 100_000, KeepBodies: 1})
			w := i.tenant("long")
			w.setPipelinef("ipc:\n  contextWindow: 100000\n")
			options := sessiontest.Options{
				Format: format, Turns: 300, Parallel: true, Thinking: true, Images: true, CJK: true, HugeResults: true,
				ToolErrors: true, Reminders: true, CacheMarkers: true, TargetTokens: 400_000, Signer: i.double,
			}
			if format == conversation.Anthropic {
				options.Model = "claude-opus-4-6" // older models drop thinking, and with it their cache, by themselves
			}
			generated := sessiontest.Generate(11, options)
			epochs := 0
			for step, body := range generated.Bodies() {
				response, answer := w.post(path, body, map[string]string{"X-Session-Id": "long"})
				if response.StatusCode != http.StatusOK {
					t.Fatalf("request %d: status %d: %s", step+1, response.StatusCode, answer)
				}
				if response.Header.Get("X-Palimpsest-Archived") != "0" {
					epochs++
				}
			}
			if busts := i.busts(); epochs == 0 || busts > epochs {
				t.Errorf("%d cache busts in %d epochs", busts, epochs)
			}
			i.shutdown()
			i.boot()
			w.checkMessages(formats.ByFormat()[format], generated.Messages(generated.Steps()-1))
		})
	}
}

// On models whose thinking is bound to what stands before it, an epoch asks the
// provider to drop what no longer fits, and goes on asking.
// W29
func TestBoundThinkingSurvivesEpochs(t *testing.T) {
	t.Parallel()
	i := start(t, providerdouble.Config{Window: 60_000, BindThinking: true, KeepBodies: 1})
	w := i.tenant("bound")
	w.setPipelinef("ipc:\n  contextWindow: 60000\n")
	generated := sessiontest.Generate(4, sessiontest.Options{
		Model: "claude-opus-5-5", Turns: 60, Parallel: true, Thinking: true, TargetTokens: 90_000, Signer: i.double,
		Bind: func(head []byte) (sessiontest.Binder, error) { return i.double.Bind(head) },
	})
	edited := false
	for step, body := range generated.Bodies() {
		response, answer := w.post("/v1/messages", body, map[string]string{"Anthropic-Beta": "effort-2025-11-24", "X-Session-Id": "bound"})
		if response.StatusCode != http.StatusOK {
			t.Fatalf("request %d: status %d: %s", step+1, response.StatusCode, answer)
		}
		edited = edited || response.Header.Get("X-Palimpsest-Archived") != "0"
		last, _ := i.double.Last()
		betas := strings.Join(last.Header.Values("Anthropic-Beta"), ",")
		if !strings.Contains(betas, "effort-2025-11-24") || strings.Contains(betas, "thinking-binding-controls") != edited {
			t.Fatalf("request %d, edited %v: betas %s", step+1, edited, betas)
		}
	}
	if !edited {
		t.Error("there was no epoch")
	}
}

// checkMessages reads messages back from the archive. Cache markers, which a
// client moves from request to request, stand where they first stood.
func (w *tenant) checkMessages(codec wire.Codec, messages []json.RawMessage) {
	w.t.Helper()
	session := w.onlySession()
	for index, message := range messages {
		_, original := w.original(session, index)
		if !bytes.Equal(codec.Mark(original, ""), message) {
			w.t.Fatalf("message %d is not as it was sent: %.300s, want %.300s", index, original, message)
		}
	}
}

// generated returns the whole body of a generated session.
func generated(double *providertest.Server, turns int) []byte {
	session := sessiontest.Generate(5, sessiontest.Options{Turns: turns, Parallel: true, Thinking: true, TargetTokens: 120_000, Signer: double})
	return session.Body(session.Steps() - 1)
}

// endpoints returns the endpoint of each format.
func endpoints() map[conversation.Format]string {
	return map[conversation.Format]string{
		conversation.Anthropic: "/v1/messages", conversation.OpenAIChat: "/v1/chat/completions", conversation.OpenAIResponses: "/v1/responses",
	}
}
