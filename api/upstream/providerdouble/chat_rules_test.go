package providerdouble_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

const (
	chatCalls  = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_X","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"call_Y","type":"custom","custom":{"name":"run","input":"x"}}]}`
	chatToolX  = `{"role":"tool","tool_call_id":"call_X","content":"x"}`
	chatToolY  = `{"role":"tool","tool_call_id":"call_Y","content":[{"type":"text","text":"y"}]}`
	chatAnswer = `{"role":"assistant","content":"b"}`
)

func chatBody(test ruleCase) []byte {
	extra := test.extra
	if extra != "" {
		extra += ","
	}
	return fmt.Appendf(nil, `{"model":"gpt-4o",%s"messages":[%s]}`, extra, strings.Join(test.list, ","))
}

// A1 A2 W39
func TestToolMessagesFollowTheirCalls(t *testing.T) {
	t.Parallel()
	const unanswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
	checkRules(t, providerdouble.OpenAIChat, providerdouble.Config{}, chatBody, []ruleCase{
		{name: "answered in another order", list: []string{userA, chatCalls, chatToolY, chatToolX, userA}},
		{name: "one missing", list: []string{userA, chatCalls, chatToolX, userA}, want: unanswered + "call_Y"},
		{name: "pending at the end", list: []string{userA, chatCalls}, want: unanswered + "call_X, call_Y"},
		{name: "something between", list: []string{userA, chatCalls, userA, chatToolX, chatToolY}, want: unanswered + "call_X, call_Y"},
		{name: "orphan", list: []string{userA, chatToolX}, want: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
		{name: "orphan behind an answer", list: []string{userA, chatAnswer, chatToolX}, want: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
		{name: "of another call", list: []string{userA, chatCalls, chatToolX, `{"role":"tool","tool_call_id":"call_Z","content":"z"}`},
			want: "Invalid parameter: 'tool_call_id' of 'call_Z' not found in 'tool_calls' of previous message."},
		{name: "twice", list: []string{userA, chatCalls, chatToolX, chatToolX}, want: "Duplicate value for 'tool_call_id' of 'call_X' in message[3]."},
		{name: "same id in two answers", list: []string{userA, chatCalls, chatToolX, chatToolY, chatCalls, chatToolX, chatToolY}},
	})
}

func TestChatMessagesHaveAShape(t *testing.T) {
	t.Parallel()
	picture := `{"type":"image_url","image_url":{"url":"https://x/y.png"}}`
	call := func(inner string) string { return `{"role":"assistant","tool_calls":[` + inner + `]}` }
	checkRules(t, providerdouble.OpenAIChat, providerdouble.Config{}, chatBody, []ruleCase{
		{name: "every role", list: []string{`{"role":"system","content":"s"}`, `{"role":"developer","content":"d","name":"n"}`, userOf(text("a"), picture), chatAnswer, userA}},
		{name: "none", list: nil, want: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{name: "unknown role", list: []string{`{"role":"human","content":"a"}`},
			want: "Invalid value: 'human'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},
		{name: "user without content", list: []string{`{"role":"user","content":null}`}, want: "Invalid value for 'content': expected a string, got null."},
		{name: "answer without anything", list: []string{userA, `{"role":"assistant"}`}, want: "Invalid value for 'content': expected a string, got null."},
		{name: "refusal", list: []string{userA, `{"role":"assistant","content":null,"refusal":"no"}`, userA}},
		{name: "audio of an earlier answer", list: []string{userA, `{"role":"assistant","audio":{"id":"audio_1"}}`, userA}},
		{name: "empty list", list: []string{`{"role":"user","content":[]}`}, want: "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{name: "object as content", list: []string{`{"role":"user","content":{}}`}, want: "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an object instead."},
		{name: "picture in a result", list: []string{userA, chatCalls, chatToolX, `{"role":"tool","tool_call_id":"call_Y","content":[` + picture + `]}`},
			want: "Invalid value: 'image_url'. Supported values are: 'text'."},
		{name: "picture in an answer", list: []string{userA, assistantOf(picture)}, want: "Invalid value: 'image_url'. Supported values are: 'text', and 'refusal'."},
		{name: "text without text", list: []string{userOf(`{"type":"text"}`)}, want: "Missing required parameter: 'messages[0].content[0].text'."},
		{name: "no calls", list: []string{userA, call("")}, want: "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{name: "call without id", list: []string{userA, call(`{"type":"function"}`)}, want: "Missing required parameter: 'messages[1].tool_calls[0].id'."},
		{name: "arguments as object", list: []string{userA, call(`{"id":"c","type":"function","function":{"name":"read","arguments":{}}}`)},
			want: "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead."},
		{name: "bad name", list: []string{userA, call(`{"id":"c","type":"function","function":{"name":"a b","arguments":""}}`)},
			want: "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		{name: "long id", list: []string{userA, call(`{"id":"` + strings.Repeat("c", 41) + `"}`)},
			want: "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead."},
		{name: "calls by the user", list: []string{`{"role":"user","content":"a","tool_calls":[{}]}`}, want: "Unknown parameter: 'messages[0].tool_calls'."},
		{name: "unknown member", list: []string{`{"role":"user","content":"a","cache_control":{}}`}, want: "Unknown parameter: 'messages[0].cache_control'."},
		{name: "unknown top member", extra: `"thinking":{}`, list: []string{userA}, want: "Unknown parameter: 'thinking'."},
		{name: "stream options without stream", extra: `"stream_options":{"include_usage":true}`, list: []string{userA}, want: "The 'stream_options' parameter is only allowed when 'stream' is enabled."},
		{name: "tool without name", extra: `"tools":[{"type":"function","function":{}}]`, list: []string{userA}, want: "Missing required parameter: 'tools[0].function.name'."},
		{name: "too many tokens", extra: `"max_tokens":20000`, list: []string{userA},
			want: "max_tokens is too large: 20000. This model supports at most 16384 completion tokens, whereas you provided 20000."},
		{name: "five breakpoints", list: []string{userOf(strings.Repeat(`{"type":"text","text":"a","prompt_cache_breakpoint":{}},`, 4) + `{"type":"text","text":"a","prompt_cache_breakpoint":{}}`)},
			want: "A maximum of 4 prompt cache breakpoints may be provided. Found 5."},
	})
}

func TestChatOverflowHasItsCode(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{Window: 1000, TokensPerO200k: 2})
	err := double.Validate(providerdouble.OpenAIChat, chatBody(ruleCase{list: []string{userOf(text(words(600)))}}))
	var rejection *providerdouble.Rejection
	if !errors.As(err, &rejection) || rejection.Code != "context_length_exceeded" || rejection.Param != "messages" {
		t.Fatalf("rejection is %+v", rejection)
	}
	const want = "This model's maximum context length is 1000 tokens. However, your messages resulted in 1206 tokens. Please reduce the length of the messages."
	if rejection.Message != want {
		t.Fatalf("message is %q", rejection.Message)
	}
}
