package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"palimpsest/pipeline/wire"
)

// stumbling is a listener that panics at an event, at the end, or at a body.
type stumbling struct {
	at     string
	events int
}

func (s *stumbling) Event(event wire.Event) {
	if event.Name == s.at {
		panic("as planned")
	}
	s.events++
}

func (s *stumbling) Answer() wire.Answer {
	if s.at == "end" {
		panic("as planned")
	}
	return wire.Answer{Messages: []json.RawMessage{nil}, Complete: true, Said: s.events, Usage: wire.Usage{Reported: true, Input: 7}}
}

func (s *stumbling) Body(json.RawMessage) wire.Answer {
	if s.at == "body" {
		panic("as planned")
	}
	return wire.Answer{Complete: true, Said: s.events}
}

// What panics in a tap is its answer's failure; the events after it are read.
func TestAPanicIsTheAnswersFailure(t *testing.T) {
	t.Parallel()
	const stream, body = "event: one\ndata: 1\n\nevent: two\ndata: 2\n\nevent: three\ndata: 3\n\n", `{"a":"body"}`
	for name, test := range map[string]struct {
		at, content string
		fails       bool
		input, said int
	}{
		"nowhere":                             {"", stream, false, 7, 0},
		"at an event":                         {"two", stream, true, 7, 2},
		"at the first":                        {"one", stream, true, 7, 2},
		"at the last, without its blank line": {"three", strings.TrimRight(stream, "\n"), true, 7, 2},
		"at the end":                          {"end", stream, true, 0, 0},
		"nowhere in a body":                   {"", body, false, 0, 0},
		"in a body":                           {"body", body, true, 0, len(body)},
		"not where no event":                  {"four", stream, false, 7, 0},
		"a body, and no JSON":                 {"body", `{"a":`, false, 0, 0},
	} {
		tap := wire.NewTap(strings.HasPrefix(test.content, "event"), &stumbling{at: test.at})
		for _, part := range []string{test.content[:5], test.content[5:]} {
			if n, err := tap.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%s: wrote %d, %v", name, n, err)
			}
		}
		answer := tap.Answer()
		if strings.Contains(answer.Failure, "as planned") != test.fails || answer.Usage.Input != test.input || answer.Said != test.said {
			t.Errorf("%s: %+v", name, answer)
		}
		if test.fails && (answer.Messages != nil || answer.Complete) {
			t.Errorf("%s: an answer that was not read whole is taken for one: %+v", name, answer)
		}
	}
}
