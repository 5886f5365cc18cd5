package wire

import "net/http"

// little is how many tokens of an answer are next to nothing.
const little = 16

// Overflow reports whether an answer tells that its prompt is too long: by an error, or by having
// ended at the model's window. most is how long the request lets the answer become; 0 if it
// doesn't say.
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

// SaysLittle reports whether next to nothing is lost with an answer: with an error, nothing at all.
func (a Answer) SaysLittle() bool {
	if a.Error != nil {
		return a.Said == 0 && len(a.Messages) == 0
	}
	return a.Usage.Output <= little && a.Said <= little
}

// endsAtWindow reports whether an answer ended because the window was full. Some servers say so,
// others cut the prompt to the window and have no room for an answer then.
func (a Answer) endsAtWindow(most int) bool {
	switch a.StopReason {
	case "model_context_window_exceeded", "context_window_exceeded", "context_length_exceeded", "model_length", "prompt_too_long":
		return true
	case "length", "max_output_tokens":
		return a.Usage.Reported && a.SaysLittle() && (a.Usage.Output == 0 || a.Usage.Output < most)
	case "max_tokens": // to ask for an answer of nothing warms Anthropic's cache
		return a.Usage.Reported && a.SaysLittle() && a.Usage.Output < most
	}
	return false
}

// Opening says what an event tells of a stream's beginning.
type Opening int

// What events tell.
const (
	Begun   Opening = iota // the answer has begun, or has failed
	Opens                  // no more than that the stream is open
	IsAlive                // that it is still open
)

// ProblemOf returns the error that an event, or a body, tells of, in whatever envelope; nil if it
// tells of none.
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
