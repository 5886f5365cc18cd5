package providerdouble

import (
	"encoding/json"
	"fmt"
	"net/http"
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
