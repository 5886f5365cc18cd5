package wire_test

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// W22: the providers' own words for a prompt that is too long.
func TestOverflowIsReadOffTheProvidersWords(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		codec   wire.Codec
		kind    string
		code    string
		message string
		want    wire.Overflow
	}{
		"anthropic": {anthropic.New(), "invalid_request_error", "", "prompt is too long: 210000 tokens > 200000 maximum", wire.Overflow{Tokens: 210_000, Window: 200_000}},
		"anthropic, answer included": {anthropic.New(), "invalid_request_error", "",
			"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
			wire.Overflow{Tokens: 188_240, Reserved: 21_333, Window: 200_000}},
		"anthropic, another host": {anthropic.New(), "invalid_request_error", "", "Input is too long for requested model.", wire.Overflow{}},
		"chat": {openaichat.New(), "invalid_request_error", "context_length_exceeded",
			"This model's maximum context length is 128000 tokens. However, your messages resulted in 210000 tokens. Please reduce the length of the messages.",
			wire.Overflow{Tokens: 210_000, Window: 128_000}},
		"chat, answer included": {openaichat.New(), "BadRequestError", "",
			"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
			wire.Overflow{Tokens: 8000, Reserved: 1000, Window: 8192}},
		"responses": {openairesponses.New(), "invalid_request_error", "context_length_exceeded",
			"Your input exceeds the context window of this model. Please adjust your input and try again.", wire.Overflow{}},
		"responses without the code": {openairesponses.New(), "invalid_request_error", "", "Your input exceeds the context window of this model.", wire.Overflow{}},
	} {
		body := errorBody(t, test.kind, test.code, test.message)
		if said, ok := test.codec.Overflow(400, body); !ok || said != test.want {
			t.Errorf("%s: %+v, %v; want %+v", name, said, ok, test.want)
		}
		for _, status := range []int{200, 413, 429, 500} {
			if _, ok := test.codec.Overflow(status, body); ok {
				t.Errorf("%s: status %d counts as an overflow", name, status)
			}
		}
	}
	if limit := (wire.Overflow{Reserved: 1000, Window: 8192}).Limit(); limit != 7192 {
		t.Errorf("limit %d, want 7192", limit)
	}
}

// W23: every other error is none.
func TestOtherErrorsAreNoOverflow(t *testing.T) {
	t.Parallel()
	for _, codec := range []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()} {
		for _, message := range []string{
			"max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-opus-5",
			"messages.1.content.0: the tool said: prompt is too long: x tokens > y maximum", "Overloaded", "",
			"messages: text content blocks must be non-empty", "maximum context length is unknown",
		} {
			if said, ok := codec.Overflow(400, errorBody(t, "invalid_request_error", "invalid_value", message)); ok {
				t.Errorf("%s: %q counts as an overflow: %+v", codec.Format(), message, said)
			}
		}
		for _, body := range []string{"", "{", "[]", `"prompt is too long: 2 tokens > 1 maximum"`, `{"error":"context_length_exceeded"}`, "<html>prompt is too long</html>"} {
			if _, ok := codec.Overflow(400, []byte(body)); ok {
				t.Errorf("%s: %q counts as an overflow", codec.Format(), body)
			}
		}
	}
}

func errorBody(t *testing.T, kind, code, message string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": kind, "code": code, "message": message}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
