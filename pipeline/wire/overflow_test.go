package wire_test

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// W22, B6: the providers' own words for a prompt that is too long.
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
		"google":                     {openaichat.New(), "", "", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", wire.Overflow{Tokens: 1_196_265, Window: 1_048_575}},
		"xai":                        {openaichat.New(), "", "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", wire.Overflow{Tokens: 537_812, Window: 131_072}},
		"groq":                       {openaichat.New(), "invalid_request_error", "", "Please reduce the length of the messages or completion.", wire.Overflow{}},
		"openrouter": {openaichat.New(), "", "",
			"This endpoint's maximum context length is 131072 tokens. However, you requested about 250000 tokens (240000 of text input, 10000 in the output).",
			wire.Overflow{Tokens: 240_000, Reserved: 10_000, Window: 131_072}},
		"openrouter, with tools": {openaichat.New(), "", "",
			"This endpoint's maximum context length is 131072 tokens. However, you requested about 250000 tokens (200000 of text input, 40000 of tool input, 10000 in the output).",
			wire.Overflow{Window: 131_072}},
		"vllm": {openaichat.New(), "BadRequestError", "", "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
			wire.Overflow{Tokens: 5000, Window: 4096}},
		"llama.cpp":        {openaichat.New(), "", "", "the request exceeds the available context size, try increasing it", wire.Overflow{}},
		"llama.cpp, newer": {openaichat.New(), "exceed_context_size_error", "", "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", wire.Overflow{Tokens: 9000, Window: 8192}},
		"lm studio":        {openaichat.New(), "", "", "The number of tokens to keep from the initial prompt is greater than the context length.", wire.Overflow{}},
		"copilot":          {openairesponses.New(), "", "", "prompt token count of 139000 exceeds the limit of 128000", wire.Overflow{Tokens: 139_000, Window: 128_000}},
		"minimax":          {anthropic.New(), "", "", "invalid params, context window exceeds limit", wire.Overflow{}},
		"kimi":             {anthropic.New(), "", "", "Your request exceeded model token limit: 262144 (requested: 300000)", wire.Overflow{Tokens: 300_000, Window: 262_144}},
		"mistral": {openaichat.New(), "", "", "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
			wire.Overflow{Tokens: 140_000, Window: 131_072}},
		"together": {openaichat.New(), "", "", "The input (40000 tokens) is longer than the model's context length (32768 tokens).", wire.Overflow{Tokens: 40_000, Window: 32_768}},
		"litellm":  {openaichat.New(), "", "", "Prompt exceeds the model's maximum context length of 32768 tokens", wire.Overflow{Window: 32_768}},
		"poolside": {openaichat.New(), "", "", "Input exceeds the maximum allowed input length of 65536 tokens", wire.Overflow{Window: 65_536}},
		"ollama":   {openaichat.New(), "", "", "prompt too long; exceeded max context length by 900 tokens", wire.Overflow{}},
		"z.ai":     {anthropic.New(), "", "", "model_context_window_exceeded", wire.Overflow{}},
		"no words": {openaichat.New(), "", "context_length_exceeded", "", wire.Overflow{}},
	} {
		body := errorBody(t, test.kind, test.code, test.message)
		if said, ok := test.codec.Overflow(400, body); !ok || said != test.want {
			t.Errorf("%s: %+v, %v; want %+v", name, said, ok, test.want)
		}
		if said, ok := test.codec.Overflow(413, body); !ok || said != test.want {
			t.Errorf("%s with status 413: %+v, %v; want %+v", name, said, ok, test.want)
		}
		for _, status := range []int{200, 401, 403, 429, 500, 529} {
			if _, ok := test.codec.Overflow(status, body); ok {
				t.Errorf("%s: status %d counts as an overflow", name, status)
			}
		}
	}
	if limit := (wire.Overflow{Reserved: 1000, Window: 8192}).Limit(); limit != 7192 {
		t.Errorf("limit %d, want 7192", limit)
	}
}

// A14: a body of too many bytes is refused in words of any kind, or in none.
func TestABodyThatIsTooLargeIsAnOverflow(t *testing.T) {
	t.Parallel()
	for _, codec := range []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()} {
		for _, body := range []string{
			`{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
			`{"error":{"message":"Request body is too large.","type":"invalid_request_error","param":null,"code":"request_too_large"}}`,
			"<html><head><title>413 Request Entity Too Large</title></head></html>", "", "Payload too large", `{"error":"too large"}`,
		} {
			if said, ok := codec.Overflow(413, []byte(body)); !ok || !said.IsHeavy || said.Window != 0 || said.Tokens != 0 {
				t.Errorf("%s: %q: %+v, %v", codec.Format(), body, said, ok)
			}
		}
		if said, ok := codec.Overflow(400, errorBody(t, "request_too_large", "", "Request exceeds the maximum size")); !ok || !said.IsHeavy {
			t.Errorf("%s: %+v, %v", codec.Format(), said, ok)
		}
	}
}

// B6: too much in too little time is no overflow, whatever the status.
func TestARateLimitIsNoOverflow(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 413, 429} {
		for code, message := range map[string]string{
			"rate_limit_exceeded": "Request too large for model `llama-3.3-70b` on tokens: Limit 6000, Requested 7500, please reduce the length of the messages",
			"":                    "Too many tokens, please wait before trying again.",
			"tokens":              "Request too large for gpt-4o in organization org-1 on tokens per minute (TPM): Limit 30000, Requested 40000.",
			"throttled":           "Throttling error: Too many tokens",
			"insufficient_quota":  "You exceeded your current quota: token limit exceeded",
		} {
			if said, ok := (openaichat.New()).Overflow(status, errorBody(t, "", code, message)); ok {
				t.Errorf("status %d: %q counts as an overflow: %+v", status, message, said)
			}
		}
	}
}

// W23, B6: every other error is no overflow.
func TestOtherErrorsAreNoOverflow(t *testing.T) {
	t.Parallel()
	for _, codec := range []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()} {
		for _, message := range []string{
			"max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-opus-5",
			"messages.1.content.0: the tool said: prompt is too long: x tokens > y maximum", "messages.1.content.0: the tool said: too many tokens", "input[3]: context_length_exceeded", "Overloaded", "",
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
