package openairesponses_test

import (
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const (
	reasoning = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x"}`
	message   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"h\u00e9"}]}`
	call      = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"p\":\"a\"}","call_id":"c1","name":"read"}`
	usage     = `{"input_tokens":120,"input_tokens_details":{"cached_tokens":100,"cache_write_tokens":5},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3}}`
)

const toolStream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"gpt-6-sol","status":"in_progress","output":[],"usage":null,"error":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":` + reasoning + `}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":1,"delta":"h\u00e9"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":` + message + `}

event: response.future.event
data: {"type":"response.future.event"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":` + call + `}

`

const completed = `{"id":"resp_1","object":"response","model":"gpt-6-sol","status":"completed","error":null,"incomplete_details":null,"output":[` +
	reasoning + `, ` + message + `,` + call + `],"usage":` + usage + `}`

func answers() []wiretest.Answer {
	whole := wire.Answer{
		ID:    "resp_1",
		Model: "gpt-6-sol", StopReason: "completed", Complete: true,
		Usage:    wire.Usage{Reported: true, Input: 15, CacheRead: 100, CacheWrite: 5, Output: 7},
		Messages: wiretest.Raws(reasoning, message, call),
	}
	return []wiretest.Answer{
		{
			Name: "reasoning, text and a call", Said: 7, Body: completed, Want: whole,
			Stream: toolStream + "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + completed + "}\n\n",
			Echo: []string{
				`{"type":"reasoning","summary":[],"encrypted_content":"x"}`,
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hé"}]}`,
				`{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"p\":\"a\"}"}`,
			},
		},
		{
			Name: "an end that leaves the output out", Said: 7, Want: whole,
			Stream: toolStream + "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"output\":[],\"usage\":" + usage + "}}\n\n",
		},
		{
			Name: "events without names", Stream: "data: {\"type\":\"response.completed\",\"response\":" + completed + "}\n\n", Want: whole,
		},
		{
			Name: "an answer cut at its limit", Body: `{"object":"response","model":"m","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[` + message + `],"usage":{"input_tokens":1,"output_tokens":2}}`,
			Stream: "event: response.incomplete\ndata: {\"response\":{\"model\":\"m\",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[" + message + "],\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n\n",
			Want:   wire.Answer{Model: "m", StopReason: "max_output_tokens", Complete: true, Usage: wire.Usage{Reported: true, Input: 1, Output: 2}, Messages: wiretest.Raws(message)},
		},
		{
			Name:   "a failure inside the stream", // W15
			Stream: "event: response.created\ndata: {\"response\":{\"model\":\"m\"}}\n\nevent: response.output_item.done\ndata: {\"item\":" + message + "}\n\nevent: response.failed\ndata: {\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"x\"},\"output\":[]}}\n\n",
			Want:   wire.Answer{Model: "m", StopReason: "failed", ErrorType: "context_length_exceeded", Error: []byte(`{"code":"context_length_exceeded","message":"x"}`)},
		},
		{
			Name: "an error event", Stream: "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"x\",\"param\":null}\n\n",
			Want: wire.Answer{ErrorType: "rate_limit_exceeded", Error: []byte(`{"type":"error","code":"rate_limit_exceeded","message":"x","param":null}`)},
		},
		{
			Name: "an error event of the other kind", Stream: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"server_error\",\"code\":null,\"message\":\"x\"}}\n\n",
			Want: wire.Answer{ErrorType: "server_error", Error: []byte(`{"type":"server_error","code":null,"message":"x"}`)},
		},
		{
			Name: "an error body", Body: `{"error":{"message":"x","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`,
			Want: wire.Answer{ErrorType: "context_length_exceeded", Error: []byte(`{"message":"x","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}`)},
		},
		{
			Name: "an error body where a stream was expected", Stream: "{\"error\":{\"message\":\"x\",\"type\":\"invalid_request_error\",\"code\":null}}",
			Want: wire.Answer{ErrorType: "invalid_request_error", Error: []byte(`{"message":"x","type":"invalid_request_error","code":null}`)},
		},
	}
}
