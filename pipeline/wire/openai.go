package wire

import "encoding/json"

// OpenAI returns the problem as OpenAI's APIs word one.
func (p Problem) OpenAI() []byte {
	out := AppendQuote([]byte(`{"error":{"message":`), p.Message)
	out = AppendQuote(append(out, `,"type":`...), p.openAIType())
	out = appendQuoteOrNull(append(out, `,"param":`...), p.Param)
	out = appendQuoteOrNull(append(out, `,"code":`...), p.Code)
	return append(out, "}}"...)
}

// openAIType returns the type under which OpenAI's clients know the problem.
func (p Problem) openAIType() string {
	if p.OpenAIType != "" {
		return p.OpenAIType
	}
	switch p.Type {
	case "authentication_error", "permission_error", "not_found_error", "conflict_error", "request_too_large":
		return "invalid_request_error"
	case "billing_error":
		return "insufficient_quota"
	case "api_error", "timeout_error", "overloaded_error":
		return "server_error"
	}
	return p.Type
}

func appendQuoteOrNull(out []byte, text string) []byte {
	if text == "" {
		return append(out, "null"...)
	}
	return AppendQuote(out, text)
}

// OpenAIErrorType returns what kind of error an error object of OpenAI's is: its
// code where it has one, else its type.
func OpenAIErrorType(object json.RawMessage) string {
	if code := Text(object, "code"); code != "" {
		return code
	}
	if kind := Text(object, "type"); kind != "" {
		return kind
	}
	return "error"
}

// OpenAIUsage returns a usage out of OpenAI's counts: a prompt's size with what
// was read from the cache, and its details.
func OpenAIUsage(prompt int, output, details json.RawMessage) Usage {
	usage := Usage{Reported: true}
	usage.Output, _ = Int(output)
	usage.CacheRead, _ = Int(Get(details, "cached_tokens"))
	usage.CacheWrite, _ = Int(Get(details, "cache_write_tokens"))
	usage.Input = max(0, prompt-usage.CacheRead-usage.CacheWrite)
	return usage
}
