package wire

import "net/http"

// little is the number of tokens up to which an answer counts as almost empty.
const little = 16

// Overflow reports whether an answer shows that its prompt is too long: by an error, or because it ended at
// the model's window. most is the request's limit on the answer; 0 if unlimited.
func (a Answer) Overflow(most int) (said Overflow, ok bool) {
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
func (a Answer) SaysLittle() bool {
	if a.Error != nil {
		return a.Said == 0 && len(a.Messages) == 0
	}
	return a.Usage.Output <= little && a.Said <= little
}

// endsAtWindow reports whether an answer ended because the window was full. Some servers report that. Others
// truncate the prompt to the window, which leaves no room for an answer.
func (a Answer) endsAtWindow(most int) bool {
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
