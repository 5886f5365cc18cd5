package providerdouble

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// Rejection is a provider's refusal of a request. Error returns the provider's
// message, word for word.
type Rejection struct {
	Status  int
	Type    string // the error's type in the provider's list
	Code    string // OpenAI's code, null if "", or Anthropic's error_code
	Param   string // OpenAI's param; null if ""
	Message string

	// RetryAfter is the seconds of the retry-after header; 0 omits it.
	RetryAfter int
}

// Error returns the provider's message.
func (r *Rejection) Error() string { return r.Message }

// refuse returns both providers' refusal of a body that breaks a rule.
func refuse(format string, values ...any) *Rejection {
	return &Rejection{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, values...)}
}

func (r *Rejection) at(param string) *Rejection {
	r.Param = param
	return r
}

func (r *Rejection) coded(code string) *Rejection {
	r.Code = code
	return r
}

// asError keeps a nil rejection a nil error.
func (r *Rejection) asError() error {
	if r == nil {
		return nil
	}
	return r
}

// write answers a request with the refusal in a format's dialect.
func (r *Rejection) write(w http.ResponseWriter, format, requestID string) {
	w.Header().Set("Content-Type", "application/json")
	if r.RetryAfter > 0 && !isGoogle(format) {
		w.Header().Set("Retry-After", strconv.Itoa(r.RetryAfter))
	}
	switch {
	case isGoogle(format):
	case r.Status >= http.StatusInternalServerError, r.Status == http.StatusTooManyRequests && r.RetryAfter > 0:
		w.Header().Set("X-Should-Retry", "true")
	case r.Status == http.StatusTooManyRequests:
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(r.Status)
	if format == Anthropic {
		writeBody(w, r.anthropic(requestID))
		return
	}
	if format == Gemini {
		writeBody(w, r.gemini())
		return
	}
	if format == GeminiInteractions {
		writeBody(w, r.interactions())
		return
	}
	writeBody(w, openaiError{Error: r.openai()})
}

type anthropicError struct {
	Type      string               `json:"type"`
	Error     anthropicErrorDetail `json:"error"`
	RequestID string               `json:"request_id,omitempty"`
}

type anthropicErrorDetail struct {
	Type    string            `json:"type"`
	Message string            `json:"message"`
	Details *anthropicDetails `json:"details,omitempty"`
}

// anthropicDetails holds the codes that clients should rely on, because messages may change.
type anthropicDetails struct {
	Code string `json:"error_code"`
}

func (r *Rejection) anthropic(requestID string) anthropicError {
	detail := anthropicErrorDetail{Type: r.Type, Message: r.Message}
	if r.Code != "" {
		detail.Details = &anthropicDetails{Code: r.Code}
	}
	return anthropicError{Type: "error", Error: detail, RequestID: requestID}
}

type openaiError struct {
	Error openaiErrorDetail `json:"error"`
}

type openaiErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (r *Rejection) openai() openaiErrorDetail {
	return openaiErrorDetail{Message: r.Message, Type: r.Type, Param: orNull(r.Param), Code: orNull(r.Code)}
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// encode returns the JSON of a value this package made itself, which cannot fail.
func encode[T any](value T) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("providerdouble: encode %T: %v", value, err))
	}
	return encoded
}

// writeBody sends a whole JSON answer. It ignores errors, since the client may have left.
func writeBody[T any](w http.ResponseWriter, value T) {
	_, _ = w.Write(encode(value))
}
