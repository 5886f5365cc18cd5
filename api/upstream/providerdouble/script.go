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

// Request is what a script sees of a request.
type Request struct {
	Format string // Anthropic, OpenAIChat or OpenAIResponses
	Model  string
	Header http.Header
	Body   []byte // as it came, decompressed
	Stream bool

	// User is the text of the newest message that a person typed, or another agent sent.
	User string

	// Results are the texts of the tool results at the end of the conversation;
	// none where it ends with the user's own message.
	Results []string

	// Answers counts the assistant's messages so far.
	Answers int

	// Thinks says that the model reasons before it answers.
	Thinks bool

	// Tokens is the size of the prompt as it will be reported.
	Tokens int
}

// Reply is what a script answers.
type Reply struct {
	Text     string
	Thinking string // sent only where the request lets the model think
	Calls    []Call

	// StopReason overrides the provider's word for why the answer ended.
	StopReason string

	// Usage overrides what is reported.
	Usage *Usage

	// Chunks is in how many pieces a stream sends the text; 0 is up to 8.
	Chunks int

	// Delay is waited before each piece of a stream, by Config.Sleep.
	Delay time.Duration

	// Terms are those on which the answer is given, where they are not the ones asked for.
	Terms Terms

	// Rejection refuses the request after all.
	Rejection *Rejection

	// Misbehave is one of the Misbehave constants.
	Misbehave string
}

// Call is one tool call.
type Call struct {
	Name  string
	Input json.RawMessage // an object; of a custom tool of Responses, its text as it stands

	// Namespace is the namespace that the tool was offered in; Responses only.
	Namespace string
}

// Usage is what a provider reports, in its tokens.
type Usage struct {
	Input, CacheRead, CacheWrite, CacheWrite1h, Output, Reasoning int

	Terms
}

// Echo is the default script. A user text with lines "call tool NAME {json}"
// gets these calls; tool results get an answer that counts them; any other text
// is repeated.
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

// callsIn finds the calls that a text asks for.
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

// pieces cuts a text into n parts at rune borders, none of them empty.
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
