package gemini_test

import (
	"fmt"
	"strings"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const usageOfAnswer = `{"promptTokenCount":120,"cachedContentTokenCount":100,"toolUsePromptTokenCount":4,"candidatesTokenCount":7,"thoughtsTokenCount":3,"totalTokenCount":134}`

// chunk is an event of a stream with parts.
func chunk(parts string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":120},"modelVersion":"gemini-2.5-pro","responseId":"r"}`
}

func events(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n"
}

func answers() []wiretest.Answer {
	const (
		said    = `{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},` + callPart + `]}`
		blocked = `{"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[]},"usageMetadata":{"promptTokenCount":3},"modelVersion":"m"}`
		stopped = `{"candidates":[{"finishReason":"SAFETY","index":0,"safetyRatings":[]}],"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3},"modelVersion":"m"}`
		failure = `{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}`
	)
	whole := wire.Answer{
		Model: "gemini-2.5-pro", StopReason: "stop", Complete: true,
		Usage:    wire.Usage{Reported: true, Input: 24, CacheRead: 100, Output: 10},
		Messages: wiretest.Raws(said),
	}
	end := `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{"p":"a"}},"thoughtSignature":"c2ln"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":` + usageOfAnswer + `,"modelVersion":"gemini-2.5-pro","responseId":"r"}`
	pieces := []string{chunk(`{"text":"h","thought":true}`), chunk(`{"text":"m","thought":true}`), chunk(`{"text":"I "}`), chunk(`{"text":"look."}`), end}
	return append(grounded(), []wiretest.Answer{
		{
			Name: "thinking, text and a call", Said: 17, Want: whole, Stream: events(pieces...),
			Body: `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"I look."},` + callPart + `],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":` + usageOfAnswer + `,"modelVersion":"gemini-2.5-pro"}`,
			Echo: []string{`{"parts":[{"text":"I look."},{"functionCall":{"name":"read","args":{"p":"a"}},"thoughtSignature":"c2ln"}],"role":"model"}`},
		},
		{Name: "the chunks in one array", Want: whole, Body: "[" + pieces[0] + "\n,\r\n" + pieces[1] + ",\r\n" + pieces[2] + "," + pieces[3] + "," + pieces[4] + "]"},
		{
			Name: "an answer cut at its limit", Stream: events(`{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2},"modelVersion":"m"}`),
			Want: wire.Answer{Model: "m", StopReason: "max_tokens", Complete: true, Usage: wire.Usage{Reported: true, Input: 1, Output: 2}, Messages: wiretest.Raws(`{"role":"model","parts":[{"text":"a"}]}`)},
		},
		{Name: "a blocked prompt", Body: blocked, Stream: events(blocked), Want: wire.Answer{Model: "m", StopReason: "safety", Complete: true, Usage: wire.Usage{Reported: true, Input: 3}}},
		{Name: "a blocked answer", Body: stopped, Stream: events(stopped), Want: wire.Answer{Model: "m", StopReason: "safety", Complete: true, Usage: wire.Usage{Reported: true, Input: 3}}},
		{
			Name: "an error inside the stream", Said: 3, Stream: events(chunk(`{"text":"a"}`), `{"error":`+failure+`}`), // W15
			Want: wire.Answer{Model: "gemini-2.5-pro", ErrorType: "UNAVAILABLE", Error: []byte(failure), Usage: wire.Usage{Reported: true, Input: 120}},
		},
		{Name: "an error body", Body: `{"error":` + failure + `}`, Want: wire.Answer{ErrorType: "UNAVAILABLE", Error: []byte(failure)}},
		{Name: "an error body in an array", Body: `[{"error":` + failure + `}]`, Want: wire.Answer{ErrorType: "UNAVAILABLE", Error: []byte(failure)}},
		{Name: "an error body where a stream was expected", Stream: `{"error":` + failure + `}`, Want: wire.Answer{ErrorType: "UNAVAILABLE", Error: []byte(failure)}},
	}...)
}

// grounded are answers for which Google ran tools of its own.
func grounded() []wiretest.Answer {
	const (
		text  = `{"text":"It rains."}`
		code  = `{"executableCode":{"language":"PYTHON","code":"print(1)"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`
		usage = `{"promptTokenCount":20,"toolUsePromptTokenCount":500,"candidatesTokenCount":3%s}`
	)
	answer := func(parts, more, counted string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"finishReason":"STOP","index":0` + more + `}],"usageMetadata":` + fmt.Sprintf(usage, counted) + `,"modelVersion":"m"}`
	}
	want := func(parts string, found int, tools map[string]int) wire.Answer {
		return wire.Answer{
			Model: "m", StopReason: "stop", Complete: true, Tools: tools, Usage: wire.Usage{Reported: true, Input: 20 + found, Output: 3},
			Messages: wiretest.Raws(`{"role":"model","parts":[` + parts + `]}`),
		}
	}
	queries := `,"groundingMetadata":{"webSearchQueries":["", "rain today","rain tomorrow","rain today"],"groundingChunks":[{"web":{"uri":"https://a.example"}}]}`
	call := `{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["rain today"]},"id":"t"}},` + text
	return []wiretest.Answer{
		{Name: "a search, whose results are free", Body: answer(text, queries, ""), Want: want(text, 0, map[string]int{"google_search": 2})},
		{
			Name: "a search, told twice in a stream", Want: want(text, 0, map[string]int{"google_search": 2}),
			Stream: events(answer(text, queries, ""), `{"candidates":[{`+queries[1:]+`}]}`),
		},
		{Name: "a search as a call and in the grounding", Body: answer(call, queries, ""), Want: want(call, 0, map[string]int{"google_search": 2})},
		{Name: "sources without queries", Body: answer(text, `,"groundingMetadata":{"groundingChunks":[{"web":{}},{"web":{}}]}`, ""), Want: want(text, 0, map[string]int{"google_search": 1})},
		{
			Name: "a search that the usage counts", Body: answer(text, queries, `,"billedToolCalls":[{"tool":"GOOGLE_SEARCH_RETRIEVAL","successfulToolCallCount":3},{"tool":"google_search","successfulToolCallCount":1}]`),
			Want: want(text, 0, map[string]int{"google_search": 4}),
		},
		{
			Name: "maps and files", Body: answer(text, `,"groundingMetadata":{"groundingChunks":[{"maps":{}},{"maps":{}},{"retrievedContext":{}}]}`, ""),
			Want: want(text, 500, map[string]int{"google_maps": 1, "file_search": 1}),
		},
		{
			Name: "code, pages and a search", Body: answer(code+","+text, queries+`,"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://a.example"},{"retrievedUrl":"https://b.example"},{"retrievedUrl":"https://a.example"}]}`, ""),
			Want: want(code+","+text, 500, map[string]int{"google_search": 2, "code_execution": 1, "url_context": 2}),
		},
	}
}

const callPart = `{"functionCall":{"name":"read","args":{"p":"a"}},"thoughtSignature":"c2ln"}`
