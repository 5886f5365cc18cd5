package anthropic_test

import (
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const toolStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-opus-5-5","stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":15},"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h\u00e9 \ud83d"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude00"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

: a comment
event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I \"look\".\n"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a\\"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"nb\",\"n\":1.0}"}}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}

event: future_event
data: {"type":"future_event"}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":4,"cache_read_input_tokens":101,"output_tokens":50}}

event: message_stop
data: {"type":"message_stop"}

`

const toolMessage = `{"role":"assistant","content":[{"type":"thinking","thinking":"h\u00e9 \ud83d\ude00","signature":"c2ln"},` +
	`{"type":"text","text":"I \"look\".\n","citations":[{"cited_text":"x"}]},` +
	`{"type":"tool_use","id":"toolu_1","name":"Read","input":{"path": "a\nb","n":1.0}}]}`

func answers() []wiretest.Answer {
	return append(append(shortAnswers(), brokenAnswers()...), richAnswer())
}

func shortAnswers() []wiretest.Answer {
	return []wiretest.Answer{
		{
			Name: "thinking, text and a call", Said: 57, Stream: toolStream,
			Body: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"thinking","thinking":"hé 😀","signature":"c2ln"},{"type":"text","text":"I \"look\".\n"},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"n":1.0,"path":"a\nb"}},{"type":"text","text":""}],"stop_reason":"tool_use","usage":{"input_tokens":4,"cache_creation_input_tokens":20,"cache_read_input_tokens":101,"cache_creation":{"ephemeral_1h_input_tokens":15},"output_tokens":50}}`,
			Want: wire.Answer{
				Model: "claude-opus-5-5", StopReason: "tool_use", Complete: true,
				Usage:    wire.Usage{Reported: true, Input: 4, CacheRead: 101, CacheWrite: 20, CacheWrite1h: 15, Output: 50},
				Messages: wiretest.Raws(toolMessage),
			},
			Echo: []string{`{"role":"assistant","content":[{"type":"text","text":"I \"look\"."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"path":"a\nb","n":1.0},"cache_control":{"type":"ephemeral"}}]}`},
		},
		{
			Name:   "an error inside the stream", // W15
			Stream: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
			Want:   wire.Answer{Model: "m", ErrorType: "overloaded_error", Error: []byte(`{"type":"overloaded_error","message":"Overloaded"}`), Usage: wire.Usage{Reported: true, Input: 7, Output: 1}},
		},
		{
			Name: "an error body", Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"},"request_id":"r"}`,
			Want: wire.Answer{ErrorType: "invalid_request_error", Error: []byte(`{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}`)},
		},
		{
			Name: "events without names", Stream: "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"ab\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
			Want: wire.Answer{Model: "m", StopReason: "end_turn", Complete: true, Messages: wiretest.Raws(`{"role":"assistant","content":[{"type":"text","text":"ab"}]}`)},
		},
		{
			Name: "a delta of the future leaves the message untold", Stream: "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"future_delta\",\"x\":1}}\n\nevent: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {}\n\n",
			Want: wire.Answer{StopReason: "end_turn", Complete: true, Usage: wire.Usage{Reported: true, Output: 9}},
		},
		{
			Name: "a compaction", Stream: "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"compaction\",\"content\":null}}\n\nevent: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"compaction_delta\",\"content\":\"short\"}}\n\nevent: message_delta\ndata: {\"delta\":{\"stop_reason\":\"compaction\"}}\n\nevent: message_stop\ndata: {}\n\n",
			Want: wire.Answer{StopReason: "compaction", Complete: true, Compactions: []wire.Usage{{}}, Messages: wiretest.Raws(`{"role":"assistant","content":[{"type":"compaction","content":"short"}]}`)},
		},
		{ // E14: the API has edited the context itself
			Name:   "tool results that the API cleared",
			Stream: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":25000,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"context_management\":{\"applied_edits\":[{\"type\":\"clear_tool_uses_20250919\",\"cleared_tool_uses\":8,\"cleared_input_tokens\":50000}]},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {}\n\n",
			Body:   `{"type":"message","model":"m","content":[],"stop_reason":"end_turn","usage":{"input_tokens":25000,"output_tokens":9},"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":50000}]}}`,
			Want:   wire.Answer{Model: "m", StopReason: "end_turn", Complete: true, Reduced: true, Usage: wire.Usage{Reported: true, Input: 25_000, Output: 9}},
		},
		{ // E14
			Name: "a history that the API compacted on the way",
			Body: `{"type":"message","model":"m","content":[],"stop_reason":"end_turn","usage":{"input_tokens":9000,"output_tokens":9,"iterations":[{"type":"compaction","input_tokens":150000,"output_tokens":3000},{"type":"message","input_tokens":9000,"output_tokens":9}]}}`,
			Want: wire.Answer{
				Model: "m", StopReason: "end_turn", Complete: true, Reduced: true, Usage: wire.Usage{Reported: true, Input: 9000, Output: 9},
				Compactions: []wire.Usage{{Reported: true, Input: 150_000, Output: 3000}},
			},
		},
		{
			Name: "no content", Body: `{"type":"message","model":"m","content":[],"stop_reason":"refusal","usage":{"input_tokens":1,"output_tokens":0}}`,
			Want: wire.Answer{Model: "m", StopReason: "refusal", Complete: true, Usage: wire.Usage{Reported: true, Input: 1}},
		},
	}
}
