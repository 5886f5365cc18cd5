package providerdouble

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Script writes the answer to a request that has passed every check.
type Script func(Request) Reply

// Request is a script's view of a request.
type Request struct {
	Format string
	Model  string
	Header http.Header
	Body   []byte // as it came, decompressed
	Stream bool

	// User is the text of the newest message from a person or another agent.
	User string

	// Results are the texts of the tool results at the end of the conversation; empty if it ends with the
	// user's own message.
	Results []string

	// Answers counts the assistant's messages so far.
	Answers int

	// Thinks says that the model reasons before it answers.
	Thinks bool

	// Tokens is the size of the prompt in reported tokens.
	Tokens int
}

// Reply is a script's answer.
type Reply struct {
	Text     string
	Thinking string // sent only if the request enables thinking
	Calls    []Call

	// StopReason overrides the provider's reason for the end of the answer.
	StopReason string

	// Usage overrides the reported usage.
	Usage *Usage

	// Chunks is the number of pieces in a stream of the text; 0 means up to 8.
	Chunks int

	// Delay passes before each piece of a stream, by Config.Sleep.
	Delay time.Duration

	// Terms override the requested terms of the answer.
	Terms Terms

	// Rejection refuses the valid request.
	Rejection *Rejection

	// Misbehave is one of the Misbehave constants.
	Misbehave string
}

// Call is one tool call.
type Call struct {
	Name  string
	Input json.RawMessage // an object; for a custom tool of Responses, its plain text

	// Namespace is the namespace that the tool was offered in; Responses only.
	Namespace string
}

// Usage is the usage that a provider reports, in its tokens.
type Usage struct {
	Input, CacheRead, CacheWrite, CacheWrite1h, Output, Reasoning int

	Terms
}

// Echo is the default script. A user text with lines "call tool NAME {json}" gets these calls; tool results
// get an answer that counts them; any other text is repeated.
func Echo(r Request) Reply {
	reply := Reply{}
	if r.Thinks {
		reply.Thinking = fmt.Sprintf("Answer %d needs a look at %d characters.", r.Answers+1, len(r.User))
	}
	if len(r.Results) > 0 {
		reply.Text = fmt.Sprintf("Read %d tool results; the last one begins: %s", len(r.Results), beginning(r.Results[len(r.Results)-1]))
		return reply
	}
	if reply.Calls = callsIn(r.User); len(reply.Calls) > 0 {
		return reply
	}
	reply.Text = "You said: " + beginning(r.User)
	return reply
}

func beginning(text string) string {
	const limit = 200
	letters := []rune(text)
	return string(letters[:min(limit, len(letters))])
}

// callsIn finds the calls requested in a text.
func callsIn(text string) []Call {
	var calls []Call
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "call tool ")
		if !ok {
			continue
		}
		name, input, _ := strings.Cut(rest, " ")
		if input = strings.TrimSpace(input); input == "" {
			input = "{}"
		}
		if json.Valid([]byte(input)) && firstByte([]byte(input)) == '{' {
			calls = append(calls, Call{Name: name, Input: json.RawMessage(input)})
		}
	}
	return calls
}

// pieces cuts a text into n non-empty parts at rune borders.
func pieces(text string, n int) []string {
	letters := []rune(text)
	if n <= 0 {
		n = 8
	}
	n = min(n, len(letters))
	parts := make([]string, 0, n)
	for i := range n {
		parts = append(parts, string(letters[i*len(letters)/n:(i+1)*len(letters)/n]))
	}
	return parts
}

// Notes is a good answer to a request for a summary: it has every requested section, without anything to
// correct.
const Notes = `## Goal
- Carry the work on.

## Constraints & Preferences
(none)

## Progress
### Done
- The first steps.

### In progress
(none)

### Blocked
(none)

## Key decisions
(none)

## Next steps
- The next step.

## Critical context
- Everything before is in the notes.`

// AsksForNotes reports whether a request asks for a summary under headings.
func AsksForNotes(r Request) bool {
	body := string(r.Body)
	return strings.Contains(body, "## Key decisions") && strings.Contains(body, "## Critical context") &&
		(strings.Contains(r.User, "Write the notes now") || strings.Contains(r.User, "This is not a message of the user"))
}

// WithNotes returns a script that answers requests for a summary with notes, and all others with script.
func WithNotes(script, notes Script) Script {
	return func(r Request) Reply {
		if AsksForNotes(r) {
			return notes(r)
		}
		return script(r)
	}
}

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
