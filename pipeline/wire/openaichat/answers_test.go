package openaichat_test

import (
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const toolStream = `data: {"id":"c","object":"chat.completion.chunk","model":"gpt-6-sol","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}

data: {"model":"gpt-6-sol","choices":[{"index":0,"delta":{"content":"h\u00e9 \ud83d"}},{"index":1,"delta":{"content":"another choice"}}]}

data: {"choices":[{"index":0,"delta":{"content":"\ude00\n"}}]}

: keep-alive

data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":\"a\\"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"nb\"}"}},{"index":1,"id":"call_2","type":"custom","custom":{"name":"patch","input":"x"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":7,"total_tokens":127,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":5},"completion_tokens_details":{"reasoning_tokens":3}}}

data: [DONE]

`

const toolMessage = `{"role":"assistant","content":"h\u00e9 \ud83d\ude00\n","reasoning_content":"hm","tool_calls":[` +
	`{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"p\":\"a\\nb\"}"}},` +
	`{"id":"call_2","type":"custom","custom":{"name":"patch","input":"x"}}]}`

func answers() []wiretest.Answer {
	return []wiretest.Answer{
		{
			Name: "text and calls", Said: 42, Stream: toolStream,
			Body: `{"id":"c","object":"chat.completion","model":"gpt-6-sol","choices":[{"index":0,"message":{"role":"assistant","content":"hé 😀\n","refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"p\":\"a\\nb\"}"}},{"id":"call_2","type":"custom","custom":{"name":"patch","input":"x"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":120,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":5}}}`,
			Want: wire.Answer{
				Model: "gpt-6-sol", StopReason: "tool_calls", Complete: true,
				Usage:    wire.Usage{Reported: true, Input: 15, CacheRead: 100, CacheWrite: 5, Output: 7},
				Messages: wiretest.Raws(toolMessage),
			},
			Echo: []string{`{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"p\": \"a\\nb\"}"}},{"id":"call_2","type":"custom","custom":{"name":"patch","input":"x"}}],"content":[{"type":"text","text":"hé 😀"}]}`},
		},
		{
			Name: "calls without an index", Said: 4, Stream: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
			Want: wire.Answer{StopReason: "tool_calls", Complete: true, Messages: wiretest.Raws(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`)},
		},
		{
			Name: "a refusal", Said: 2, Stream: "data: {\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"no\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
			Want: wire.Answer{StopReason: "stop", Complete: true, Messages: wiretest.Raws(`{"role":"assistant","content":null,"refusal":"no"}`)},
		},
		{
			Name: "an error inside the stream", Said: 1, // W15
			Stream: "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":{\"message\":\"x\",\"type\":\"server_error\",\"code\":null}}\n\n",
			Want:   wire.Answer{Model: "m", ErrorType: "server_error", Error: []byte(`{"message":"x","type":"server_error","code":null}`)},
		},
		{
			Name: "an error body", Body: `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			Want: wire.Answer{ErrorType: "context_length_exceeded", Error: []byte(`{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`)},
		},
		{
			Name:   "a spoken answer", // W39
			Stream: "data: {\"choices\":[{\"index\":0,\"delta\":{\"audio\":{\"id\":\"audio_1\",\"transcript\":\"h\"}}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"audio\":{\"data\":\"aGVsbG8=\"}}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
			Body:   `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"audio":{"id":"audio_1","expires_at":9,"data":"aGVsbG8=","transcript":"h"}},"finish_reason":"stop"}]}`,
			Want:   wire.Answer{StopReason: "stop", Complete: true, Messages: wiretest.Raws(`{"role":"assistant","content":null,"audio":{"id":"audio_1"}}`)},
			Echo:   []string{`{"role":"assistant","audio":{"id":"audio_1"}}`},
		},
		{
			Name: "a call of the old kind cannot be told from its pieces", Stream: "data: {\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"f\"}}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"function_call\"}]}\n\ndata: [DONE]\n\n",
			Want: wire.Answer{StopReason: "function_call", Complete: true},
		},
		{
			Name: "chunks and members of the future", Said: 1, Stream: "event: future\ndata: {\"object\":\"future.chunk\",\"x\":[1]}\n\ndata: {\"choices\":[{\"index\":0,\"future\":1,\"delta\":{\"content\":\"a\",\"future\":{\"content\":\"b\"}},\"logprobs\":null,\"finish_reason\":\"content_filter\"}]}\n\ndata: {\"choices\":[],\"obfuscation\":\"x\"}\n\ndata: [DONE]\n\n",
			Want: wire.Answer{StopReason: "content_filter", Complete: true, Messages: wiretest.Raws(`{"role":"assistant","content":"a"}`)},
		},
	}
}
