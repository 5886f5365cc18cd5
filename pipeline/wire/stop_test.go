package wire_test

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/wire"
)

// W49: an answer ends at the window if its provider says so, or if it ended for its length before the
// length that was asked for, with next to nothing said.
func TestAnswersThatEndAtTheWindowAreTold(t *testing.T) {
	t.Parallel()
	used := func(prompt, output int) wire.Usage { return wire.Usage{Reported: true, Input: prompt, Output: output} }
	for name, test := range map[string]struct {
		answer wire.Answer
		most   int
		window int // 0: it didn't end there
		little bool
	}{
		"said so":                  {wire.Answer{StopReason: "model_context_window_exceeded", Usage: used(7000, 1000)}, 4000, 8000, false},
		"said so, with little":     {wire.Answer{StopReason: "model_context_window_exceeded", Usage: used(7999, 1)}, 4000, 8000, true},
		"mistral":                  {wire.Answer{StopReason: "model_length", Usage: used(7999, 1)}, 0, 8000, true},
		"length of nothing":        {wire.Answer{StopReason: "length", Usage: used(8000, 0)}, 0, 8000, true},
		"length of little":         {wire.Answer{StopReason: "length", Usage: used(7998, 2)}, 500, 8000, true},
		"length as asked":          {wire.Answer{StopReason: "length", Usage: used(8000, 2)}, 2, 0, true},
		"length, no limit asked":   {wire.Answer{StopReason: "length", Usage: used(8000, 16)}, 0, 0, true},
		"length of much":           {wire.Answer{StopReason: "length", Usage: used(8000, 4096)}, 64_000, 0, false},
		"not reported":             {wire.Answer{StopReason: "length"}, 500, 0, true},
		"the cache is warmed":      {wire.Answer{StopReason: "max_tokens", Usage: used(8000, 0)}, 0, 0, true},
		"Anthropic's, cut":         {wire.Answer{StopReason: "max_tokens", Usage: used(8000, 0)}, 500, 8000, true},
		"Responses":                {wire.Answer{StopReason: "max_output_tokens", Usage: used(8000, 0)}, 0, 8000, true},
		"its regular end":          {wire.Answer{StopReason: "stop", Usage: used(8000, 0)}, 500, 0, true},
		"an error":                 {wire.Answer{Error: json.RawMessage(`{"message":"prompt is too long: 9000 tokens > 8000 maximum"}`)}, 500, 8000, true},
		"an error behind words":    {wire.Answer{Error: json.RawMessage(`{"message":"prompt is too long: 9000 tokens > 8000 maximum"}`), Said: 5}, 500, 8000, false},
		"an error of another kind": {wire.Answer{Error: json.RawMessage(`{"message":"Overloaded"}`), StopReason: "length"}, 500, 0, true},
	} {
		said, overflows := test.answer.Overflow(test.most)
		if overflows != (test.window > 0) || said.Window != test.window || test.answer.SaysLittle() != test.little {
			t.Errorf("%s: %+v, %t, little %t", name, said, overflows, test.answer.SaysLittle())
		}
	}
}

// W53: a last event without its blank line is read once, however the stream goes on.
func TestLastEventNeedsNoBlankLine(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"", "\n", "\n\n", "\r\n\r\n", "\n\ndata: [DONE]\n\n"} {
		var events []string
		keep := func(event wire.Event) { events = append(events, event.Name+" "+string(event.Data)) }
		var split wire.Splitter
		split.Write([]byte("event: a\ndata: {\"x\":"), keep)
		split.Flush(keep)
		if len(events) != 0 {
			t.Fatalf("half an event is read: %q", events)
		}
		split.Write([]byte("1}"), keep)
		split.Flush(keep)
		split.Write([]byte(rest), keep)
		split.Flush(keep)
		if len(events) == 0 || events[0] != `a {"x":1}` || len(events) > 1 && (len(events) > 2 || events[1] != " [DONE]") {
			t.Errorf("with %q behind it: %q", rest, events)
		}
	}
}
