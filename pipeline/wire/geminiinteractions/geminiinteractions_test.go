package geminiinteractions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/pipeline/wire/geminiinteractions"
	"palimpsest/pipeline/wire/wiretest"
)

func codec() geminiinteractions.Codec { return geminiinteractions.New() }

func TestConformance(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, codec(), samples())
}

func FuzzMessages(f *testing.F) { wiretest.Fuzz(f, codec(), samples()) }

func FuzzAnswers(f *testing.F) { wiretest.FuzzAnswers(f, codec(), samples()) }

// The input of Responses has the same name.
func TestInteractionsAreToldFromResponses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]conversation.Format{
		`{"input":[{"type":"user_input","content":[]}]}`:                  conversation.GeminiInteractions,
		`{"model":"m","input":"hi","system_instruction":"s"}`:             conversation.GeminiInteractions,
		`{"model":"m","input":"hi","previous_interaction_id":"v1_x"}`:     conversation.GeminiInteractions,
		`{"agent":"a","input":"hi"}`:                                      conversation.GeminiInteractions,
		`{"model":"m","input":[{"role":"user","content":"hi"}]}`:          conversation.OpenAIResponses,
		`{"model":"m","input":"hi","instructions":"s"}`:                   conversation.OpenAIResponses,
		`{"model":"m","contents":[],"system_instruction":{"parts":[]}}`:   conversation.Gemini,
		`{"model":"m","messages":[],"generation_config":{"x":"ignored"}}`: conversation.OpenAIChat,
	} {
		if found, known := formats.Recognize([]byte(body)); !known || found.Format() != want {
			t.Errorf("%s: %v, want %s", body, found, want)
		}
	}
}

// A signature belongs to exactly the step that it came with.
func TestSignedStepsAreNeverRewritten(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"type":"thought","signature":"c2ln","summary":[{"type":"text","text":"hm"}]}`,
		`{"type":"google_search_call","id":"s","arguments":{},"signature":"c2ln"}`,
		`{"type":"function_call","id":"c","name":"read","arguments":{"p":1},"signature":"c2ln"}`,
	} {
		message, err := codec().Parse(json.RawMessage(raw))
		if err != nil || !message.Flags().Has(conversation.HasOpaque) {
			t.Errorf("%s: %v, %b", raw, err, message.Flags())
		}
		message.Replace(0, `{"p":2}`)
		if encoded, err := codec().Encode(message); err == nil {
			t.Errorf("%s became %s", raw, encoded)
		}
	}
}

func TestALongAnswerIsLetGoButItsUsageIsRead(t *testing.T) {
	t.Parallel()
	tap := codec().Tap(true)
	text := strings.Repeat("x", 1<<20)
	_, _ = fmt.Fprint(tap, `data: {"index":0,"step":{"type":"model_output"},"event_type":"step.start"}`+"\n\n")
	for range wire.MaxAnswer/len(text) + 1 {
		_, _ = fmt.Fprintf(tap, "data: {\"index\":0,\"delta\":{\"type\":\"text\",\"text\":\"%s\"},\"event_type\":\"step.delta\"}\n\n", text)
	}
	_, _ = fmt.Fprint(tap, `data: {"interaction":{"status":"completed","usage":{"total_input_tokens":5,"total_output_tokens":99}},"event_type":"interaction.completed"}`+"\n\n")
	answer := tap.Answer()
	if answer.Messages != nil || !answer.Complete || answer.Usage.Output != 99 || answer.Usage.Prompt() != 5 {
		t.Errorf("%d messages, %+v", len(answer.Messages), answer.Usage)
	}
}

func TestStreamOpensBeforeItsFirstStep(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]wire.Opening{
		`{"interaction":{"id":"v1_x","status":"in_progress"},"event_type":"interaction.created"}`:                                 wire.Opens,
		`{"interaction_id":"v1_x","status":"in_progress","event_type":"interaction.status_update"}`:                               wire.Opens,
		`{"index":0,"step":{"type":"thought"},"event_type":"step.start"}`:                                                         wire.Begun,
		`{"error":{"code":"gateway_timeout","message":"Deadline expired before operation could complete."},"event_type":"error"}`: wire.Begun,
	} {
		if got := codec().Opening(wire.Event{Data: []byte(data)}); got != want {
			t.Errorf("%s: %v, want %v", data, got, want)
		}
	}
}
