package wire

import (
	"encoding/json"
	"net/http"
	"time"

	"palimpsest/pipeline/conversation"
)

// Said is a text answer given in the provider's place.
type Said struct {
	ID    string // without the format's prefix
	Model string
	Text  string
	At    time.Time // zero if unknown
}

// Answerer is a Codec that can write its own answer. The answer is complete, ends its turn, and reports a
// usage of zero, because no model was asked.
type Answerer interface {
	// Answer returns the body of the answer: a whole event stream or one JSON object. Equal input gives equal
	// bytes.
	Answer(said Said, stream bool) []byte
}

// AppendEvent appends an event to a stream. The data must be encodable.
func AppendEvent(stream []byte, name string, data any) []byte {
	encoded, err := json.Marshal(data)
	if err != nil {
		return stream // unreachable: callers pass strings, numbers, and lists of these
	}
	stream = append(append(append(stream, "event: "...), name...), "\ndata: "...)
	return append(append(stream, encoded...), "\n\n"...)
}

// Spoken returns the most informative message of an answer for a person: the first with text, otherwise the
// first with a call, otherwise the first of all; nil without messages. An answer of Responses has several,
// reasoning first. The others come back with the client's next request.
func (a *Answer) Spoken(codec Codec) json.RawMessage {
	if len(a.Messages) < 2 {
		return first(a.Messages)
	}
	var called json.RawMessage
	for _, raw := range a.Messages {
		message, err := codec.Parse(raw)
		if err != nil {
			continue
		}
		for i := range message.Blocks {
			switch block := &message.Blocks[i]; {
			case block.Kind == conversation.Text && block.Text != "":
				return raw
			case block.Kind == conversation.ToolCall && called == nil:
				called = raw
			}
		}
	}
	if called != nil {
		return called
	}
	return first(a.Messages)
}

func first(messages []json.RawMessage) json.RawMessage {
	if len(messages) == 0 {
		return nil
	}
	return messages[0]
}

// Problem is an error that the proxy reports.
type Problem struct {
	Status int
	Type   string // from Anthropic's list: "authentication_error", "invalid_request_error", "api_error", …
	// OpenAIType is the type for OpenAI's clients; "" to derive it from Type.
	OpenAIType string

	Code      string // "invalid_api_key", …; OpenAI's code, "" becomes null; Anthropic's details.error_code
	Param     string // the faulty member, for OpenAI; "" becomes null
	Message   string // says what to do next
	RequestID string
}

// little is the number of tokens up to which an answer counts as almost empty.
const little = 16

// Overflow reports whether an answer shows that its prompt is too long: by an error, or because it ended at
// the model's window. most is the request's limit on the answer; 0 if unlimited.
func (a *Answer) Overflow(most int) (said Overflow, ok bool) {
	if a.Error != nil {
		return ReadOverflow(http.StatusBadRequest, a.Error)
	}
	if !a.endsAtWindow(most) {
		return Overflow{}, false
	}
	// Prompt and answer fill the window together.
	return Overflow{Window: a.Usage.Prompt() + a.Usage.Output}, true
}

// SaysLittle reports whether an answer is almost empty or, if it has an error, completely empty.
func (a *Answer) SaysLittle() bool {
	if a.Error != nil {
		return a.Said == 0 && len(a.Messages) == 0
	}
	return a.Usage.Output <= little && a.Said <= little
}

// endsAtWindow reports whether an answer ended because the window was full. Some servers report that. Others
// truncate the prompt to the window, which leaves no room for an answer.
func (a *Answer) endsAtWindow(most int) bool {
	switch a.StopReason {
	case "model_context_window_exceeded", "context_window_exceeded", "context_length_exceeded", "model_length", "prompt_too_long":
		return true
	case "length", "max_output_tokens":
		return a.Usage.Reported && a.SaysLittle() && (a.Usage.Output == 0 || a.Usage.Output < most)
	case "max_tokens": // clients warm Anthropic's cache by asking for an empty answer
		return a.Usage.Reported && a.SaysLittle() && a.Usage.Output < most
	}
	return false
}

// Opening is an event's meaning for a stream's beginning.
type Opening int

// The meanings of an event.
const (
	Begun   Opening = iota // the answer has begun, or has failed
	Opens                  // the stream is open, nothing more
	IsAlive                // the stream is still open
)

// ProblemOf returns the error in an event or a body, from any envelope; nil if absent.
func ProblemOf(event Event) []byte {
	data := event.Data
	if len(data) > 0 && data[0] == '[' {
		for _, element := range Elements(data) {
			return ProblemOf(Event{Name: event.Name, Data: element})
		}
		return nil
	}
	var problem, kind, words []byte
	isError := event.Name == "error"
	for name, value := range Members(data) {
		switch string(name) {
		case "error":
			problem = value
		case "object", "type":
			kind = value
			isError = isError || string(value) == `"error"`
		case "detail", "message":
			words = value
		case "choices":
			words, kind = nil, value // an answer
		}
	}
	switch {
	case len(problem) > 0 && problem[0] == '{':
		return problem
	case !IsNull(problem) && string(problem) != "false" && string(problem) != `""`, isError, kind == nil && words != nil:
		return data
	}
	return nil
}
