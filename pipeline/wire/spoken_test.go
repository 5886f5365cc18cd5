package wire_test

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/openairesponses"
)

func TestSpokenIsWhatAPersonWouldRead(t *testing.T) {
	t.Parallel()
	reasoning := json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[]}`)
	call := json.RawMessage(`{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}`)
	text := json.RawMessage(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}`)
	for name, one := range map[string]struct {
		messages []json.RawMessage
		want     json.RawMessage
	}{
		"none": {}, "reasoning alone": {[]json.RawMessage{reasoning}, reasoning}, "a call behind reasoning": {[]json.RawMessage{reasoning, call}, call},
		"text behind both": {[]json.RawMessage{reasoning, call, text}, text},
		"nothing to read":  {[]json.RawMessage{reasoning, reasoning}, reasoning},
	} {
		answer := wire.Answer{Messages: one.messages}
		if got := answer.Spoken(openairesponses.New()); string(got) != string(one.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
