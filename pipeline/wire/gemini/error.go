package gemini

import (
	"net/http"
	"strconv"

	"palimpsest/pipeline/wire"
)

// Error returns the body of our error, in the form of Google's APIs (cloud.google.com/apis/design/errors). The
// reason is our code.
func (Codec) Error(problem wire.Problem) []byte {
	out := append(strconv.AppendInt([]byte(`{"error":{"code":`), int64(problem.Status), 10), `,"message":`...)
	out = wire.AppendQuote(out, problem.Message)
	out = wire.AppendQuote(append(out, `,"status":`...), statusOf(problem.Status))
	if problem.Code != "" {
		out = append(out, `,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":`...)
		out = append(wire.AppendQuote(out, problem.Code), `,"domain":"palimpsest"}]`...)
	}
	return append(out, "}}"...)
}

// statusOf returns Google's name for a status (github.com/googleapis/googleapis, google/rpc/code.proto).
func statusOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusPaymentRequired, http.StatusPreconditionFailed:
		return "FAILED_PRECONDITION"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return "UNIMPLEMENTED"
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= http.StatusInternalServerError {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// Opening implements wire.Codec. An event without a candidate's content only opens the stream.
func (Codec) Opening(event wire.Event) wire.Opening {
	if wire.ProblemOf(event) != nil {
		return wire.Begun
	}
	for name, value := range wire.Members(event.Data) {
		switch string(name) {
		case "candidates":
			for _, candidate := range wire.Elements(value) {
				if wire.HasElements(wire.Get(wire.Get(candidate, "content"), "parts")) || wire.Get(candidate, "finishReason") != nil {
					return wire.Begun
				}
			}
		case "promptFeedback":
			return wire.Begun
		}
	}
	return wire.Opens
}
