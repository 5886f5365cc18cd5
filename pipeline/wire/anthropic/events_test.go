package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

// richAnswer is an answer with blocks of every kind.
func richAnswer() wiretest.Answer {
	blocks := []string{
		`{"type":"thinking","thinking":"","signature":"c2ln"}`, // its text is omitted
		`{"type":"redacted_thinking","data":"eA=="}`,
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"a\u00e9"},"caller":{"type":"direct"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"eA==","n":1.0}]}`,
		`{"type":"text","text":"Found.","citations":[{"type":"web_search_result_location","url":"a"},{"type":"web_search_result_location","url":"b"}]}`,
		`{"type":"mcp_tool_listing","mcp_server_name":"s","tools":[]}`,
		`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","server_name":"s","input":{}}`,
		`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"x"}]}`,
		`{"type":"container_upload","file_id":"file_1"}`,
		`{"type":"fallback","from":{"model":"a"},"to":{"model":"b"},"trigger":null}`,
		`{"type":"future_block","n":12345678901234567890}`,
		`{"type":"server_tool_use","id":"srvtoolu_2","name":"code_execution","input":{"code":"1"}}`, // paused behind it
	}
	var stream strings.Builder
	event := func(name, data string) {
		fmt.Fprintf(&stream, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, data)
	}
	delta := func(i int, delta string) {
		event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, i, delta))
	}
	event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-opus-5-5","input_transformations":[{"type":"thinking_dropped","path":"messages.3.content.0","reason":"prefix_binding_mismatch"}],"usage":{"input_tokens":5,"output_tokens":1}}`)
	for i, block := range blocks {
		opening := block
		switch i {
		case 0:
			opening = `{"type":"thinking","thinking":"","signature":""}`
		case 2:
			opening = strings.Replace(block, `{"query":"a\u00e9"}`, `{}`, 1)
		case 4:
			opening = `{"type":"text","text":"","citations":[]}`
		case 11:
			opening = strings.Replace(block, `{"code":"1"}`, `{}`, 1)
		}
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, opening))
		switch i {
		case 0:
			delta(i, `{"type":"signature_delta","signature":"c2ln"}`)
		case 2:
			delta(i, `{"type":"input_json_delta","partial_json":"{\"query\":\"a\\u0"}`)
			event("ping", "")
			delta(i, `{"type":"input_json_delta","partial_json":"0e9\"}"}`)
		case 4:
			delta(i, `{"type":"text_delta","text":"Found."}`)
			delta(i, `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"a"}}`)
			delta(i, `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"b"}}`)
		case 11:
			delta(i, `{"type":"input_json_delta","partial_json":"{\"code\":\"1\"}"}`)
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
		event("future_event", `,"index":0,"delta":{"type":"text_delta","text":"no"}`)
	}
	event("message_delta", `,"delta":{"stop_reason":"pause_turn","stop_sequence":null,"container":{"id":"container_1"}},"context_management":{"applied_edits":[]},"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":2,"output_tokens":30,"server_tool_use":{"web_search_requests":1},"iterations":[{"type":"message","input_tokens":77,"output_tokens":88}]}`)
	event("message_stop", "")
	content := "[" + strings.Join(blocks, ",") + "]"
	return wiretest.Answer{
		Name: "blocks, deltas and events of every kind", Said: 37, Stream: stream.String(),
		Body: `{"type":"message","role":"assistant","model":"claude-opus-5-5","content":` + content + `,"stop_reason":"pause_turn","input_transformations":[{"type":"thinking_dropped","path":"messages.3.content.0","reason":"prefix_binding_mismatch"}],"usage":{"input_tokens":9,"cache_read_input_tokens":2,"output_tokens":30,"server_tool_use":{"web_search_requests":1}}}`,
		Want: wire.Answer{
			Model: "claude-opus-5-5", StopReason: "pause_turn", Complete: true, Reduced: true, Tools: map[string]int{"web_search": 1},
			Usage: wire.Usage{Reported: true, Input: 9, CacheRead: 2, Output: 30}, Messages: wiretest.Raws(`{"role":"assistant","content":` + content + `}`),
		},
		Echo: []string{`{"role":"assistant","content":` + content + `}`},
	}
}

// brokenAnswers break off, or hold what cannot be put together.
func brokenAnswers() []wiretest.Answer {
	const start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n"
	const text = "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"half\"}}\n\n"
	const end = "event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {}\n\n"
	return []wiretest.Answer{
		{
			Name: "an error in the middle of a block", Said: 4, Stream: start + text + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"x\"}}\n\n", // W15
			Want: wire.Answer{Model: "m", ErrorType: "api_error", Error: []byte(`{"type":"api_error","message":"x"}`), Usage: wire.Usage{Reported: true, Input: 7, Output: 1}},
		},
		{
			Name: "a delta of a block that never began", Stream: start + "event: content_block_delta\ndata: {\"index\":3,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n" + end,
			Want: wire.Answer{Model: "m", StopReason: "end_turn", Complete: true, Usage: wire.Usage{Reported: true, Input: 7, Output: 9}},
		},
		{
			Name: "a signed compaction", Stream: start + "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"compaction\",\"content\":null,\"encrypted_content\":null}}\n\nevent: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"compaction_delta\",\"content\":\"short\",\"encrypted_content\":\"eA==\"}}\n\nevent: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}}\n\n" + end,
			Want: wire.Answer{
				Model: "m", StopReason: "end_turn", Complete: true, Usage: wire.Usage{Reported: true, Input: 7, Output: 9}, Compactions: []wire.Usage{{}},
				Messages: wiretest.Raws(`{"role":"assistant","content":[{"type":"compaction","content":"short","encrypted_content":"eA==","signature":"c2ln"}]}`),
			},
		},
	}
}

func TestEveryStopReasonIsRead(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded", "compaction", "future_reason",
	} {
		stream := codec().Tap(true)
		_, _ = fmt.Fprintf(stream, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":%q,\"stop_sequence\":null}}\n\ndata: {\"type\":\"message_stop\"}\n\n", reason)
		body := codec().Tap(false)
		_, _ = fmt.Fprintf(body, `{"type":"message","content":[],"stop_reason":%q}`, reason)
		for _, answer := range []wire.Answer{stream.Answer(), body.Answer()} {
			if answer.StopReason != reason || !answer.Complete {
				t.Errorf("%s: %+v", reason, answer)
			}
		}
	}
}
