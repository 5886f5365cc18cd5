package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// MaxError is the maximum size of a parsed provider error, in bytes.
const MaxError = 64 << 10

// KeepError returns a copy of a provider's error, for Answer.Error; nil if it exceeds MaxError.
func KeepError(raw json.RawMessage) json.RawMessage {
	if len(raw) > MaxError {
		return nil
	}
	return bytes.Clone(raw)
}

// Overflow is a provider's report that a prompt is too long or its body too large. Missing values are 0.
type Overflow struct {
	Tokens   int // prompt tokens as counted by the provider
	Reserved int // for the answer, if the provider counts them too
	Window   int // the model's context window

	// IsHeavy means that the body has too many bytes, regardless of its tokens.
	IsHeavy bool
}

// Limit returns how many tokens the prompt may have; 0 if unknown.
func (o Overflow) Limit() int { return max(0, o.Window-o.Reserved) }

// ReadOverflow reads a provider's error, of any API and in any envelope: an object with or without a member
// error, an array, a string, plain text, or an error quoted in the message of another. ok is false unless it
// reports an overlong prompt or an oversized body. Status 413 always means the body's bytes, since a gateway
// in front of the provider may answer in any wording.
func ReadOverflow(status int, body []byte) (said Overflow, ok bool) {
	if status < http.StatusBadRequest {
		return Overflow{}, false
	}
	var read refusal
	read.open(body)
	if read.isAboutMoreThanLength() {
		return Overflow{}, false
	}
	for _, text := range read.texts {
		if said, ok = worded(text, status == http.StatusTooManyRequests); ok {
			if said == (Overflow{}) {
				said = Overflow{Tokens: read.tokens, Window: read.window}
			}
			return said, true
		}
	}
	if slices.ContainsFunc(read.codes, isLengthCode) {
		return read.numbers(), true
	}
	if status == http.StatusRequestEntityTooLarge || read.isHeavy() {
		return Overflow{IsHeavy: true}, true
	}
	return Overflow{}, false
}

// refusal holds the contents of an error, from any envelope.
type refusal struct {
	texts []string // in the form that plain returns
	codes []string // in lower case

	tokens, window int // llama.cpp's n_prompt_tokens and n_ctx
}

// maxEnvelopes limits the nesting of envelopes, and maxTexts the number of texts to read.
const (
	maxEnvelopes = 16
	maxTexts     = 64
)

// open reads an error's bytes.
func (r *refusal) open(body []byte) {
	text := bytes.TrimSpace(body)
	switch {
	case len(text) == 0 || text[0] == '<': // an HTML page
	case json.Valid(text):
		r.value("message", text, 0)
	case text[0] != '{' && text[0] != '[':
		r.text(string(text), 0)
	}
}

// value reads a member of an error.
func (r *refusal) value(name string, raw json.RawMessage, depth int) {
	if depth > maxEnvelopes || len(raw) == 0 || len(r.texts) > maxTexts {
		return
	}
	switch raw[0] {
	case '{':
		for name, value := range Members(raw) {
			r.value(strings.ToLower(string(name)), value, depth+1)
		}
	case '[':
		for _, element := range Elements(raw) {
			r.value(name, element, depth+1)
		}
	case '"':
		text, _ := String(raw)
		r.named(name, text, depth)
	default:
		r.number(name, raw)
	}
}

// named reads a string of an error. It skips unlisted members, because they may quote the request.
func (r *refusal) named(name, text string, depth int) {
	switch name {
	case "code", "type", "__type", "error_code", "error_type", "errorcode", "status", "kind", "finish_reason":
		r.codes = append(r.codes, strings.ToLower(text))
	case "error", "errors", "message", "msg", "detail", "details", "description", "error_message", "error_msg", "errormessage", "reason",
		"error_description", "title", "raw", "body", "response", "cause", "exception", "err", "status_message", "status_msg", "originalmessage":
		r.text(text, depth)
	}
}

// number reads a number of an error.
func (r *refusal) number(name string, raw json.RawMessage) {
	number, ok := Int(raw)
	switch {
	case !ok:
	case name == "n_prompt_tokens":
		r.tokens = number
	case name == "n_ctx":
		r.window = number
	case name == "code", name == "error_code":
		r.codes = append(r.codes, string(raw))
	}
}

// text reads a text of an error: only a code, or words, which may quote another error.
func (r *refusal) text(text string, depth int) {
	if start := strings.IndexByte(text, '{'); start >= 0 {
		var quoted json.RawMessage
		decoder := json.NewDecoder(strings.NewReader(text[start:]))
		if decoder.Decode(&quoted) == nil {
			r.value("message", quoted, depth+1)
			text = text[:start] + text[start+int(decoder.InputOffset()):]
		}
	}
	text = plain(text)
	if code := strings.TrimPrefix(text, "capability_rejected: "); !strings.ContainsAny(code, " ") { // of gateways for Claude Code
		r.codes = append(r.codes, code)
	}
	r.texts = append(r.texts, text)
}

// numbers returns the numbers of an error whose code says that the prompt is too long.
func (r *refusal) numbers() Overflow {
	for _, text := range r.texts {
		if said := numbersOf(text); said.Limit() > 0 && (said.Tokens == 0 || said.Tokens > said.Limit()) {
			return said
		}
	}
	return Overflow{Tokens: r.tokens, Window: r.window}
}

// isLengthCode reports whether a code alone means that a prompt is too long.
func isLengthCode(code string) bool {
	switch code {
	case "context_length_exceeded", "context_window_exceeded", "model_context_window_exceeded", "context_limit_exceeded", "exceed_context_size_error",
		"contextwindowexceedederror", "tokens_limit_reached", "model_max_prompt_tokens_exceeded", "prompt_too_long", "max_tokens_context_overflow", "input_too_long", "input_tokens_exceeded",
		"max_tokens_exceeded_input", "tokens_too_long", "prompt_too_large", "1261": // z.ai
		return true
	}
	return false
}

// isHeavy reports whether an error is about the body's bytes.
func (r *refusal) isHeavy() bool {
	for _, code := range r.codes {
		if code == "request_too_large" || code == "payload_too_large" || code == "request_body_too_large_after_decoding" {
			return true
		}
	}
	return slices.ContainsFunc(r.texts, heavyWords.MatchString)
}

// isAboutMoreThanLength reports whether an error is about a rate limit or money. A smaller prompt would not
// fix that.
func (r *refusal) isAboutMoreThanLength() bool {
	for _, code := range r.codes {
		if strings.Contains(code, "rate_limit") || strings.Contains(code, "quota") || strings.Contains(code, "throttl") || strings.Contains(code, "billing") {
			return true
		}
	}
	return slices.ContainsFunc(r.texts, rateWords.MatchString)
}
