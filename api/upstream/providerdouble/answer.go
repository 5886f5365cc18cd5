package providerdouble

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"
)

// cutAtWindow is the StopReason of a reply that filled the context window.
const cutAtWindow = "window"

// answer is a reply in a provider's shape, whole and as the events of a stream.
type answer struct {
	whole  []byte
	events []event
	failed []event // Responses' stream for a failure by length
}

// event is one event of a stream.
type event struct {
	name  string // "" in streams without names
	data  []byte
	chunk bool // a piece of the text, sent after Reply.Delay
}

func (e event) write(out *bytes.Buffer) {
	if e.name != "" {
		out.WriteString("event: " + e.name + "\n")
	}
	out.WriteString("data: ")
	out.Write(e.data)
	out.WriteString("\n\n")
}

// errorEvent is an error inside a stream.
func errorEvent(format string, sequence int) event {
	failure := midstreamError(format)
	switch format {
	case Anthropic:
		return event{name: "error", data: encode(failure.anthropic(""))}
	case Gemini:
		return event{data: encode(geminiRefusalFor(MisbehaveOverloaded).gemini())}
	case GeminiInteractions:
		failure := struct {
			interactionsError
			Type string `json:"event_type"`
		}{geminiRefusalFor(MisbehaveOverloaded).interactions(), "error"}
		return event{name: "error", data: encode(failure)}
	case OpenAIResponses:
		return event{name: "error", data: encode(responsesFailure{Type: "error", Code: orNull(failure.Code), Message: failure.Message, Sequence: sequence})}
	default:
		return event{data: encode(openaiError{Error: failure.openai()})}
	}
}

type responsesFailure struct {
	Type     string  `json:"type"`
	Code     *string `json:"code"`
	Message  string  `json:"message"`
	Param    *string `json:"param"`
	Sequence int     `json:"sequence_number"`
}

// delivery is how an answer is sent.
type delivery struct {
	format    string
	stream    bool
	misbehave string
	delay     time.Duration
	slow      time.Duration
	sleep     func(context.Context, time.Duration) error
}

// send writes the answer. It panics with http.ErrAbortHandler to abort the connection.
func (a answer) send(ctx context.Context, w http.ResponseWriter, how delivery) {
	if how.misbehave == MisbehaveSlow && how.sleep(ctx, how.slow) != nil {
		return
	}
	if how.misbehave == MisbehaveOverflowLate && a.failed != nil {
		a.events = a.failed
	}
	if how.stream {
		a.stream(ctx, w, how)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if how.misbehave != MisbehaveCut && how.misbehave != MisbehaveMidstream {
		_, _ = w.Write(a.whole)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.whole)))
	_, _ = w.Write(a.whole[:len(a.whole)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func (a answer) stream(ctx context.Context, w http.ResponseWriter, how delivery) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	breaks := how.misbehave == MisbehaveCut || how.misbehave == MisbehaveMidstream
	var out bytes.Buffer
	for i, e := range a.events {
		if e.chunk && how.delay > 0 && how.sleep(ctx, how.delay) != nil {
			return
		}
		if breaks && i >= len(a.events)/2 {
			breakOff(w, control, how, i)
			return
		}
		out.Reset()
		e.write(&out)
		if _, err := w.Write(out.Bytes()); err != nil {
			return
		}
		if control.Flush() != nil {
			return
		}
	}
}

// breakOff ends a stream early: with an error event, or in the middle of an event without one.
func breakOff(w http.ResponseWriter, control *http.ResponseController, how delivery, sequence int) {
	if how.misbehave == MisbehaveMidstream {
		var out bytes.Buffer
		errorEvent(how.format, sequence).write(&out)
		_, _ = w.Write(out.Bytes())
		return
	}
	_, _ = w.Write([]byte("data: {\"type\":"))
	_ = control.Flush()
	panic(http.ErrAbortHandler)
}
