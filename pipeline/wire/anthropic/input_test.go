package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// A12: the input of a call that a stream spells out is kept only if it is JSON: a client
// could not send anything else back.
func TestInvalidInputOfStreamedCallIsNotKept(t *testing.T) {
	t.Parallel()
	for spelled, want := range map[string]string{
		`{"path":"a"}`: `{"path":"a"}`, `{"path":"a`: `{}`, `{"path":"a"}}`: `{}`, `path`: `{}`, `"},{"type":"text","text":"x`: `{}`, ``: `{}`,
	} {
		var stream strings.Builder
		for _, event := range []string{
			`{"type":"message_start","message":{"model":"m"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + string(wire.Quote(spelled)) + `}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
			`{"type":"message_stop"}`,
		} {
			fmt.Fprintf(&stream, "data: %s\n\n", event)
		}
		tap := anthropic.New().Tap(true)
		if _, err := tap.Write([]byte(stream.String())); err != nil {
			t.Fatal(err)
		}
		answer := tap.Answer()
		message := `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":` + want + `}]}`
		if !answer.Complete || len(answer.Messages) != 1 || string(answer.Messages[0]) != message {
			t.Errorf("%q: complete %t, kept %s, want %s", spelled, answer.Complete, answer.Messages, message)
		}
	}
}
