package formats_test

import (
	"maps"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
)

// W52: on what terms a provider has answered, and which of its own tools it has run for it, is read
// from streams and bodies of every format.
func TestTermsOfAnAnswerAreRead(t *testing.T) {
	t.Parallel()
	const done = "data: [DONE]\n\n"
	for name, test := range map[string]struct {
		format conversation.Format
		stream bool
		answer string
		want   wire.Served
		tools  map[string]int
	}{
		"Messages": {
			conversation.Anthropic, false, `{"type":"message","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1,"service_tier":"standard","speed":"fast","inference_geo":"us","server_tool_use":{"web_search_requests":3,"web_fetch_requests":0}}}`,
			wire.Served{Tier: "standard", Speed: "fast", Region: "us"}, map[string]int{"web_search": 3, "web_fetch": 0},
		},
		"Messages, streamed": {
			conversation.Anthropic, true, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1,\"service_tier\":\"batch\",\"inference_geo\":\"us\"}}}\n\n" +
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":2,\"server_tool_use\":{\"web_search_requests\":1}}}\n\n",
			wire.Served{Tier: "batch", Region: "us"}, map[string]int{"web_search": 1},
		},
		"Chat":             {conversation.OpenAIChat, false, `{"model":"m","service_tier":"flex","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, wire.Served{Tier: "flex"}, nil},
		"Chat, with tools": {conversation.OpenAIChat, false, `{"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"server_tool_use":{"web_search_requests":2}}}`, wire.Served{}, map[string]int{"web_search": 2}},
		"Chat, streamed, with tools": {
			conversation.OpenAIChat, true, "data: {\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"server_tool_use\":{\"web_search_requests\":2,\"web_fetch\":9}}}\n\n" + done,
			wire.Served{}, map[string]int{"web_search": 2},
		},
		"Chat, streamed": {conversation.OpenAIChat, true, "data: {\"model\":\"m\",\"service_tier\":\"priority\",\"choices\":[]}\n\n" + done, wire.Served{Tier: "priority"}, nil},
		"Responses": {
			conversation.OpenAIResponses, false, `{"model":"m","status":"completed","service_tier":"default","output":[{"type":"web_search_call"},{"type":"function_call","call_id":"c"},{"type":"web_search_call"},{"type":"file_search_call"}],"usage":{"input_tokens":1,"output_tokens":1}}`,
			wire.Served{Tier: "default"}, map[string]int{"web_search": 2, "file_search": 1},
		},
		"Responses, with tools of other kinds": {
			conversation.OpenAIResponses, false, `{"model":"m","status":"completed","output":[{"type":"image_generation_call"},{"type":"mcp_call"},{"type":"tool_search_call"},{"type":"local_shell_call"},{"type":"custom_tool_call"},{"type":"x_search_call"}],"usage":{"input_tokens":1,"output_tokens":1}}`,
			wire.Served{}, map[string]int{"image_generation": 1, "x_search": 1},
		},
		"Responses, streamed": {
			conversation.OpenAIResponses, true, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"service_tier\":\"auto\"}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"service_tier\":\"priority\",\"output\":[]}}\n\n",
			wire.Served{Tier: "priority"}, nil,
		},
		"nothing said": {conversation.OpenAIChat, false, `{"model":"m","service_tier":null,"choices":[]}`, wire.Served{}, nil},
	} {
		codec, known := formats.Of(test.format)
		if !known {
			t.Fatal(test.format)
		}
		tap := codec.Tap(test.stream)
		if _, err := tap.Write([]byte(test.answer)); err != nil {
			t.Fatal(err)
		}
		if got := tap.Answer(); got.Served != test.want || !maps.Equal(got.Tools, test.tools) {
			t.Errorf("%s: %+v and %v, want %+v and %v", name, got.Served, got.Tools, test.want, test.tools)
		}
	}
}
