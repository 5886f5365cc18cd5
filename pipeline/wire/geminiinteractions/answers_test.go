package geminiinteractions_test

import (
	"fmt"
	"strings"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const (
	thoughtStep = `{"type":"thought","signature":"c2ln","summary":[{"type":"text","text":"hm, so"}]}`
	outputStep  = `{"type":"model_output","content":[{"type":"text","text":"I look."}]}`
	callStep    = `{"type":"function_call","id":"c1","name":"read","arguments":{"p":"a"}}`
	searchStep  = `{"type":"google_search_call","id":"s1","arguments":{"queries":["a"]},"signature":"c2ln"}`
	usage       = `{"total_tokens":134,"total_input_tokens":120,"total_cached_tokens":100,"total_tool_use_tokens":4,"total_output_tokens":7,"total_thought_tokens":3,"grounding_tool_count":[{"type":"google_search","count":2}]}`
)

// events writes the events of a stream, with names or without.
func events(named bool, data ...string) string {
	var stream strings.Builder
	for _, event := range data {
		if _, name, ok := strings.Cut(event, `"event_type":"`); ok && named {
			fmt.Fprintf(&stream, "event: %s\n", strings.TrimSuffix(name, `"}`))
		}
		fmt.Fprintf(&stream, "data: %s\n\n", event)
	}
	return stream.String()
}

func answers() []wiretest.Answer {
	whole := wire.Answer{
		ID: "v1_x", Model: "gemini-3-pro-preview", StopReason: "requires_action", Complete: true, Served: wire.Served{Tier: "standard"}, Tools: map[string]int{"google_search": 2},
		Usage:    wire.Usage{Reported: true, Input: 20, CacheRead: 100, Output: 10},
		Messages: wiretest.Raws(thoughtStep, searchStep, outputStep, callStep),
	}
	stream := []string{
		`{"interaction":{"id":"v1_x","status":"in_progress","object":"interaction","model":"gemini-3-pro-preview"},"event_type":"interaction.created"}`,
		`{"interaction_id":"v1_x","status":"in_progress","event_type":"interaction.status_update"}`,
		`{"index":0,"step":{"type":"thought"},"event_type":"step.start"}`,
		`{"index":0,"delta":{"type":"thought_signature","signature":"c2ln"},"event_type":"step.delta"}`,
		`{"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"hm, "}},"event_type":"step.delta"}`,
		`{"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"so"}},"event_type":"step.delta"}`,
		`{"index":0,"event_type":"step.stop"}`,
		`{"index":1,"step":{"type":"google_search_call","id":"s1"},"event_type":"step.start"}`,
		`{"index":1,"delta":{"type":"google_search_call","arguments":{"queries":["a"]},"signature":"c2ln"},"event_type":"step.delta"}`,
		`{"index":1,"event_type":"step.stop"}`,
		`{"index":2,"step":{"type":"model_output"},"event_type":"step.start"}`,
		`{"index":2,"delta":{"type":"text","text":"I "},"event_type":"step.delta"}`,
		`{"index":2,"delta":{"type":"text","text":"look."},"event_type":"step.delta"}`,
		`{"index":2,"delta":{"type":"text_annotation_delta","annotations":[{}]},"event_type":"step.delta"}`,
		`{"index":2,"event_type":"step.stop"}`,
		`{"index":3,"step":{"type":"function_call","id":"c1","name":"read","arguments":{}},"event_type":"step.start"}`,
		`{"index":3,"delta":{"type":"arguments_delta","arguments":"{\"p\":"},"event_type":"step.delta"}`,
		`{"index":3,"delta":{"type":"arguments_delta","arguments":"\"a\"}"},"event_type":"step.delta"}`,
		`{"index":3,"event_type":"step.stop"}`,
		`{"interaction":{"id":"v1_x","status":"requires_action","usage":` + usage + `,"service_tier":"standard","object":"interaction","model":"gemini-3-pro-preview"},"event_type":"interaction.completed"}`,
	}
	short := whole
	short.Messages = wiretest.Raws(outputStep)
	ran := []string{
		`{"type":"google_search_call","id":"s1","arguments":{"queries":["a","","b"]}}`, `{"type":"google_search_call","id":"s2","arguments":{"queries":["a"]}}`,
		`{"type":"code_execution_call","id":"x1","arguments":{"code":"1"}}`, callStep,
	}
	const failure = `{"code":"gateway_timeout","message":"Deadline expired before operation could complete."}`
	body := `{"id":"v1_x","object":"interaction","model":"gemini-3-pro-preview","status":"requires_action","service_tier":"standard","steps":[{"type":"user_input","content":[{"type":"text","text":"q"}]},` +
		thoughtStep + `,` + searchStep + `,` + outputStep + `,` + callStep + `],"usage":` + usage + `}`
	return []wiretest.Answer{
		{
			Name: "a thought, a search, text and a call", Said: 41, Body: body, Want: whole, Stream: events(true, stream...) + "event: done\ndata: [DONE]\n\n",
			Echo: []string{
				`{"type":"thought","signature":"c2ln","summary":[{"type":"text","text":"hm, so"}]}`, searchStep,
				`{"type":"model_output","content":[{"type":"text","text":"I look."}]}`, `{"type":"function_call","id":"c1","name":"read","arguments":{"p":"a"}}`,
			},
		},
		{Name: "events without names", Said: 7, Stream: events(false, append(append([]string{}, stream[10:15]...), stream[19])...) + "data: [DONE]\n\n", Want: short},
		{
			Name: "an end with the steps in it", Want: whole,
			Stream: events(true, stream[0], strings.Replace(stream[len(stream)-1], `"object"`, `"steps":[`+strings.Join([]string{thoughtStep, searchStep, outputStep, callStep}, ",")+`],"object"`, 1)),
		},
		{
			Name: "an answer cut at its limit", Body: `{"model":"m","status":"incomplete","steps":[` + outputStep + `],"usage":{"total_input_tokens":1,"total_output_tokens":2}}`,
			Want: wire.Answer{Model: "m", StopReason: "incomplete", Complete: true, Usage: wire.Usage{Reported: true, Input: 1, Output: 2}, Messages: wiretest.Raws(outputStep)},
		},
		{
			Name: "tools that the usage does not count", Body: `{"model":"m","status":"completed","steps":[` + strings.Join(ran, ",") + `],"usage":{"total_input_tokens":1,"total_tool_use_tokens":50,"total_output_tokens":2}}`,
			Want: wire.Answer{
				Model: "m", StopReason: "completed", Complete: true, Usage: wire.Usage{Reported: true, Input: 51, Output: 2}, Messages: wiretest.Raws(ran...),
				Tools: map[string]int{"google_search": 2, "code_execution": 1},
			},
		},
		{Name: "an answer in the background", Body: `{"agent":"deep-research","id":"v1_x","status":"in_progress"}`, Want: wire.Answer{ID: "v1_x", Model: "deep-research"}},
		{
			Name: "a failure", Body: `{"model":"m","status":"failed","errors":[` + failure + `]}`,
			Want: wire.Answer{Model: "m", StopReason: "failed", ErrorType: "gateway_timeout", Error: []byte(failure)},
		},
		{
			Name: "an error inside the stream", Said: 28, Stream: events(true, append(append([]string{}, stream[:13]...), `{"error":`+failure+`,"event_type":"error"}`)...), // W15
			Want: wire.Answer{ID: "v1_x", Model: "gemini-3-pro-preview", ErrorType: "gateway_timeout", Error: []byte(failure)},
		},
		{Name: "an error body", Body: `{"error":` + failure + `}`, Want: wire.Answer{ErrorType: "gateway_timeout", Error: []byte(failure)}},
		{
			Name: "an error of Google's other form", Body: `{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}`,
			Want: wire.Answer{ErrorType: "INVALID_ARGUMENT", Error: []byte(`{"code":400,"message":"m","status":"INVALID_ARGUMENT"}`)},
		},
		{Name: "an error body where a stream was expected", Stream: `{"error":` + failure + `}`, Want: wire.Answer{ErrorType: "gateway_timeout", Error: []byte(failure)}},
	}
}
