package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/gemini"
	"palimpsest/pipeline/wire/wiretest"
)

func codec() gemini.Codec { return gemini.New() }

func TestConformance(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, codec(), samples())
}

func FuzzMessages(f *testing.F) { wiretest.Fuzz(f, codec(), samples()) }

func FuzzAnswers(f *testing.F) { wiretest.FuzzAnswers(f, codec(), samples()) }

func TestMessagesCarryNoMarkers(t *testing.T) {
	t.Parallel()

	raw := json.RawMessage(`{"role":"user","parts":[{"text":"a"}]}`)
	if marked := codec().Mark(raw, "1h"); string(marked) != string(raw) {
		t.Errorf("marked: %s", marked)
	}
}

// Google joins parallel calls by their order if they have no ids, and Gemini CLI then gives ids to the responses
// only.
func TestCallsAndResponsesWithoutIDsAreJoinedByTheirOrder(t *testing.T) {
	t.Parallel()

	ids := func(raw string) (found []string) {
		message, err := codec().Parse(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range message.Blocks {
			found = append(found, block.ID)
		}
		return found
	}
	calls := ids(`{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}},{"functionCall":{"name":"list"}},{"functionCall":{"name":"read","args":{}}},{"functionCall":{"name":"read","id":"x1"}}]}`)
	responses := ids(`{"role":"user","parts":[{"functionResponse":{"name":"read","id":"read-1764500000000-a1b2"}},{"functionResponse":{"name":"list"}},{"functionResponse":{"name":"read","id":"read__read_1764500000001_2"}},{"functionResponse":{"name":"read","id":"read__x1"}}]}`)
	if want := []string{"read#0", "list#0", "read#1", "x1"}; fmt.Sprint(calls) != fmt.Sprint(want) || fmt.Sprint(responses) != fmt.Sprint(want) {
		t.Errorf("calls %v, responses %v", calls, responses)
	}
}

// A signature belongs to exactly the part that it came with.
func TestSignedPartsAreNeverRewritten(t *testing.T) {
	t.Parallel()

	for _, raw := range []string{
		`{"role":"model","parts":[{"text":"said","thoughtSignature":"c2ln"}]}`,
		`{"role":"model","parts":[{"functionCall":{"name":"read","args":{"p":1}},"thoughtSignature":"c2ln"}]}`,
		`{"role":"model","parts":[{"function_call":{"name":"read","args":{"p":1}},"thought_signature":"c2ln"}]}`,
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
	part := strings.Repeat("x", 1<<20)
	for range wire.MaxAnswer/len(part) + 1 {
		_, _ = fmt.Fprintf(tap, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"%s\"}]}}]}\n\n", part)
	}
	_, _ = fmt.Fprint(tap, "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":99}}\n\n")
	answer := tap.Answer()
	if answer.Messages != nil || !answer.Complete || answer.Usage.Output != 99 || answer.Usage.Prompt() != 5 {
		t.Errorf("%d messages, %+v", len(answer.Messages), answer.Usage)
	}
}

// The names are those of google.rpc.Code.
func TestErrorsHaveGooglesStatus(t *testing.T) {
	t.Parallel()

	for status, want := range map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "FAILED_PRECONDITION", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED",
		409: "ABORTED", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	} {
		var body struct {
			Error struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
				Status  string `json:"status"`
			} `json:"error"`
		}
		if err := json.Unmarshal(codec().Error(wire.Problem{Status: status, Message: "m"}), &body); err != nil || body.Error.Status != want || body.Error.Code != status {
			t.Errorf("%d: %+v, %v", status, body, err)
		}
	}
}

func TestStreamOpensWithoutContent(t *testing.T) {
	t.Parallel()

	for data, want := range map[string]wire.Opening{
		`{"usageMetadata":{"promptTokenCount":3}}`:                               wire.Opens,
		`{"candidates":[{"content":{"role":"model","parts":[]}}]}`:               wire.Opens,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]}}]}`:   wire.Begun,
		`{"candidates":[{"finishReason":"SAFETY"}]}`:                             wire.Begun,
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:                            wire.Begun,
		`{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`:   wire.Begun,
		`[{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}]`: wire.Begun,
	} {
		if got := codec().Opening(wire.Event{Data: []byte(data)}); got != want {
			t.Errorf("%s: %v, want %v", data, got, want)
		}
	}
}

func TestOversizedPromptIsRecognized(t *testing.T) {
	t.Parallel()

	const body = `{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`
	if said, ok := wire.ReadOverflow(http.StatusBadRequest, []byte(body)); !ok || said != (wire.Overflow{Tokens: 1_196_265, Window: 1_048_576}) {
		t.Errorf("%+v, %t", said, ok)
	}
}
