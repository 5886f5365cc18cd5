package openaichat_test

import (
	"bytes"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/openaichat"
)

const (
	roleChunk    = `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":null}`
	quotedChunk  = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"\"choices\":[],\"usage\":{} ä€😀"}}],"usage":null}`
	lateChunk    = `data: {"usage":{"prompt_tokens":7},"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	filterChunk  = `data: {"id":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`
	usageChunk   = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}`
	spacedUsage  = `data: { "usage" : {"prompt_tokens":7}, "choices" : [ ] }`
	errorChunk   = `data: {"error":{"message":"choices","type":"server_error"}}`
	doneChunk    = `data: [DONE]`
	commentChunk = `: "choices":[] keep-alive`
)

// W18: a usage that was not asked for is asked for.
func TestUsageIsAskedForWhereItIsNot(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"messages":[],"stream":true}`:                                        `{"include_usage":true}`,
		`{"messages":[],"stream_options":null}`:                                `{"include_usage":true}`,
		`{"messages":[],"stream_options":{}}`:                                  `{"include_usage":true}`,
		`{"messages":[],"stream_options":{"include_usage":false,"x":[1e400]}}`: `{"include_usage":true,"x":[1e400]}`,
		`{"messages":[],"stream_options":{"x":1}}`:                             `{"x":1,"include_usage":true}`,
		`{"messages":[],"stream_options":{"include_usage":true}}`:              ``,
		`{"messages":[],"stream_options":[]}`:                                  ``,
	} {
		envelope, err := wire.Open([]byte(body), "messages")
		if err != nil {
			t.Fatal(err)
		}
		member, needed := openaichat.New().AskUsage(envelope)
		if string(member.Raw) != want || needed != (want != "") {
			t.Errorf("%s: %s, %v; want %s", body, member.Raw, needed, want)
		}
	}
}

// W18: the chunk with the usage goes, every other byte stays, wherever the stream
// is cut.
func TestUsageIsTakenOutOfAStreamCutAnywhere(t *testing.T) {
	t.Parallel()
	events := []string{commentChunk, roleChunk, quotedChunk, filterChunk, "event: x\n" + lateChunk, usageChunk, errorChunk, spacedUsage, doneChunk}
	for name, lineEnd := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		var stream, want strings.Builder
		for _, event := range events {
			text := strings.ReplaceAll(event, "\n", lineEnd) + lineEnd + lineEnd
			stream.WriteString(text)
			if event != usageChunk && event != spacedUsage {
				want.WriteString(text)
			}
		}
		whole := stream.String()
		for size := 1; size <= len(whole); size++ {
			filter := openaichat.New().WithoutUsage()
			var out bytes.Buffer
			for rest := []byte(whole); len(rest) > 0; {
				n := min(size, len(rest))
				out.Write(filter.Pass(bytes.Clone(rest[:n])))
				rest = rest[n:]
			}
			out.Write(filter.End())
			if out.String() != want.String() {
				t.Fatalf("%s in pieces of %d:\n%q\nwant\n%q", name, size, out.String(), want.String())
			}
		}
	}
}

// W14: what is seen to be a part of the answer goes on before its event has ended.
func TestFilterHoldsNothingBackThatHasChoices(t *testing.T) {
	t.Parallel()
	filter := openaichat.New().WithoutUsage()
	first := filter.Pass([]byte(`data: {"id":"c","choices":[{"index":0,"delta":{"content":"a`))
	if len(first) == 0 {
		t.Error("the beginning of a chunk with choices is held back")
	}
	if rest := filter.Pass([]byte("b\"}}]}\n\n")); string(rest) != "b\"}}]}\n\n" {
		t.Errorf("its end comes out as %q", rest)
	}
	if held := filter.Pass([]byte(`data: {"choices":[`)); len(held) != 0 {
		t.Errorf("%q has gone on before its choices were seen", held)
	}
	if end := filter.End(); string(end) != `data: {"choices":[` {
		t.Errorf("a stream that ends early ends with %q", end)
	}
}

// An event that is longer than a usage can be is not kept.
func TestFilterHoldsBackALittleOnly(t *testing.T) {
	t.Parallel()
	filter := openaichat.New().WithoutUsage()
	piece, passed := bytes.Repeat([]byte("x"), 1000), 0
	for range 200 {
		passed += len(filter.Pass(piece))
	}
	if held := 200_000 - passed; held > 70_000 {
		t.Errorf("%d bytes are held back", held)
	}
}
