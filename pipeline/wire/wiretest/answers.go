package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

func testRequests(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Requests {
		envelope, err := wire.Open([]byte(sample.Body), codec.List())
		if err != nil {
			t.Errorf("%s: %v", sample.Name, err)
			continue
		}
		request, err := codec.Request(envelope)
		if err != nil || !reflect.DeepEqual(request, sample.Want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", sample.Name, err, request, sample.Want)
		}
	}
}

func testFaults(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Faults {
		envelope, err := wire.Open([]byte(sample.Body), codec.List())
		if err == nil {
			_, err = codec.Request(envelope)
		}
		var invalid *wire.Invalid
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), sample.Error) {
			t.Errorf("%s: error %v, want one with %q", sample.Name, err, sample.Error)
		}
	}
}

func testAnswers(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Answers {
		for stream, text := range map[bool]string{true: sample.Stream, false: sample.Body} {
			if text == "" {
				continue
			}
			got := tapped(codec, stream, text)
			want := sample.streamed()
			if !stream {
				want.Said = 0
				// A body keeps its bytes and a stream is rebuilt, so only their content must be equal.
				want.Messages, got.Messages = nil, said(t, codec, got.Messages)
				want.Messages = said(t, codec, sample.Want.Messages)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s (stream %v):\n got %s\nwant %s", sample.Name, stream, show(got), show(want))
			}
			if sample.Echo == nil {
				continue
			}
			if echo, got := said(t, codec, Raws(sample.Echo...)), said(t, codec, sample.Want.Messages); !reflect.DeepEqual(echo, got) {
				t.Errorf("%s: the client sends back %s, the answer was %s", sample.Name, echo, got)
			}
		}
	}
}

// said returns the content of messages.
func said(t *testing.T, codec wire.Codec, messages []json.RawMessage) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	for _, raw := range messages {
		message := parse(t, codec, string(raw))
		if message.Role != conversation.Assistant {
			t.Errorf("%s is no answer", raw)
		}
		all = append(all, codec.Normalize(message))
	}
	return all
}

// W14, S26: every place to cut a stream in two, every line ending, byte by byte.
func testCuts(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Answers {
		for ending, step := range map[string]int{"\n": 1, "\r\n": 5, "\r": 5} {
			text := strings.ReplaceAll(sample.Stream, "\n", ending)
			if text == "" {
				continue
			}
			for i := 0; i < len(text); i += step {
				if got := tapped(codec, true, text[:i], text[i:]); !reflect.DeepEqual(got, sample.streamed()) {
					t.Fatalf("%s, cut at %d, lines end with %q: %s", sample.Name, i, ending, show(got))
				}
			}
			if got := tapped(codec, true, strings.Split(text, "")...); !reflect.DeepEqual(got, sample.streamed()) {
				t.Errorf("%s, byte by byte, lines end with %q: %s", sample.Name, ending, show(got))
			}
		}
	}
}

// W17: an answer that ends early does not count as an answer, but its length so far is known.
func testCutOff(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Answers {
		said := 0
		for i := range len(sample.Stream) + 1 {
			got := tapped(codec, true, sample.Stream[:i])
			if got.Said < said && !got.Complete || got.Said > i {
				t.Fatalf("%s, broken off after %d bytes: %d bytes were said, and %d before", sample.Name, i, got.Said, said)
			}
			said = max(said, got.Said)
			if !got.Complete && got.Messages != nil || got.Complete && !sample.Want.Complete {
				t.Fatalf("%s, broken off after %d bytes: %s", sample.Name, i, show(got))
			}
		}
		if said != sample.Said {
			t.Errorf("%s: %d bytes were said before the end, want %d", sample.Name, said, sample.Said)
		}
		for i := range len(sample.Body) {
			if got := tapped(codec, false, sample.Body[:i]); got.Complete || got.Messages != nil {
				t.Fatalf("%s, body broken off after %d bytes: %s", sample.Name, i, show(got))
			}
		}
	}
}

func tapped(codec wire.Codec, stream bool, chunks ...string) wire.Answer {
	tap := codec.Tap(stream)
	buffer := make([]byte, 0, 4096)
	for _, chunk := range chunks {
		buffer = append(buffer[:0], chunk...) // the tap must not keep it
		_, _ = tap.Write(buffer)
	}
	clear(buffer)
	return tap.Answer()
}

func show(answer wire.Answer) string {
	var messages strings.Builder
	for _, message := range answer.Messages {
		messages.WriteString("\n\t" + string(message))
	}
	answer.Messages = nil
	return fmt.Sprintf("%+v%s", answer, &messages)
}
