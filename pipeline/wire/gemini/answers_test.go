package gemini_test

import (
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const usageOfAnswer = `{"promptTokenCount":120,"cachedContentTokenCount":100,"toolUsePromptTokenCount":4,"candidatesTokenCount":7,"thoughtsTokenCount":3,"totalTokenCount":134}`

// chunk is an event of a stream with parts.
func chunk(parts, more string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0` + more + `}],"usageMetadata":{"promptTokenCount":120},"modelVersion":"gemini-2.5-pro","responseId":"r"}`
}

func events(chunks ...string) (stream string) {
	for _, data := range chunks {
		stream += "data: " + data + "\n\n"
	}
	return stream
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
	pieces := []string{chunk(`{"text":"h","thought":true}`, ""), chunk(`{"text":"m","thought":true}`, ""), chunk(`{"text":"I "}`, ""), chunk(`{"text":"look."}`, ""), end}
	return []wiretest.Answer{
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
			Name: "an error inside the stream", Said: 3, Stream: events(chunk(`{"text":"a"}`, ""), `{"error":`+failure+`}`), // W15
			Want: wire.Answer{Model: "gemini-2.5-pro", ErrorType: "UNAVAILABLE", Error: []byte(failure), Usage: wire.Usage{Reported: true, Input: 120}},
		},
		{Name: "an error body", Body: `{"error":` + failure + `}`, Want: wire.Answer{ErrorType: "UNAVAILABLE", Error: []byte(failure)}},
		{Name: "an error body in an array", Body: `[{"error":` + failure + `}]`, Want: wire.Answer{ErrorType: "UNAVAILABLE", Error: []byte(failure)}},
		{Name: "an error body where a stream was expected", Stream: `{"error":` + failure + `}`, Want: wire.Answer{ErrorType: "UNAVAILABLE", Error: []byte(failure)}},
	}
}

const callPart = `{"functionCall":{"name":"read","args":{"p":"a"}},"thoughtSignature":"c2ln"}`
