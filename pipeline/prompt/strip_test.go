package prompt

import (
	"bytes"
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
)

// Of a message without thinking every byte stays; of one with thinking all but that.
func TestOnlyThinkingIsLeftOut(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"role":"assistant","content":"thinking"}`: `{"role":"assistant","content":"thinking"}`,
		`{ "content" : [ {"type":"thinking","thinking":"a","signature":"s"} , {"type":"text","text":"thinking","n":1e400} ] ,"x":1.0}`:                          `{ "content" : [ {"type":"text","text":"thinking","n":1e400} ] ,"x":1.0}`,
		`{"content":[{"type":"text","text":"a"}, {"data":"x","type":"redacted_thinking"},{"type":"tool_use","id":"t","name":"n","input":{"type":"thinking"}}]}`: `{"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"n","input":{"type":"thinking"}}]}`,
		`{"content":[{"type":"thinking","thinking":"a","signature":"s"}],"role":"assistant"}`:                                                                   `{"content":[{"type":"text","text":"[thinking left out]"}],"role":"assistant"}`,
		`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"fallback","from":{},"to":{}},{"type":"thinking","thinking":"","signature":"s"}]}`:   `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"fallback","from":{},"to":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"{\"type\":\"thinking\"}"}]}]}`:                     `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"{\"type\":\"thinking\"}"}]}]}`,
		`{"role":"assistant","content":null}`: `{"role":"assistant","content":null}`,
		`{"role":"assistant","content":[]}`:   `{"role":"assistant","content":[]}`,
	} {
		if got := messageWithoutThinking(json.RawMessage(raw)); string(got) != want {
			t.Errorf("%s became\n%s, want\n%s", raw, got, want)
		}
	}
	const two = `{"content":[{"type":"thinking"},{"type":"text","text":"a"}]},{"content":"b"}`
	if got := eachWithoutThinking(json.RawMessage(two)); string(got) != `{"content":[{"type":"text","text":"a"}]},{"content":"b"}` {
		t.Errorf("two messages became %s", got)
	}
}

// FuzzThinkingIsLeftOut takes thinking out of any message.
func FuzzThinkingIsLeftOut(f *testing.F) {
	f.Add([]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s"},{"type":"text","text":"b"}]}`))
	f.Add([]byte(`{"content":[ {"type":"redacted_thinking"} ],"content":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		stripped := messageWithoutThinking(raw)
		if !json.Valid(stripped) || !bytes.Equal(messageWithoutThinking(stripped), stripped) {
			t.Fatalf("%q became %q", raw, stripped)
		}
		for _, block := range wire.Elements(wire.Get(stripped, "content")) {
			if kind := wire.Text(block, "type"); kind == "thinking" || kind == "redacted_thinking" {
				t.Fatalf("%q became %q", raw, stripped)
			}
		}
	})
}
