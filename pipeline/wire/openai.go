package wire

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/expression"
)

// OpenAI returns the problem in the form of OpenAI's APIs.
func (p Problem) OpenAI() []byte {
	out := AppendQuote([]byte(`{"error":{"message":`), p.Message)
	out = AppendQuote(append(out, `,"type":`...), p.openAIType())
	out = appendQuoteOrNull(append(out, `,"param":`...), p.Param)
	out = appendQuoteOrNull(append(out, `,"code":`...), p.Code)
	return append(out, "}}"...)
}

// openAIType returns the problem's type in OpenAI's APIs.
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

// OpenAIErrorType returns the type of an error object of OpenAI: its code, or otherwise its type.
func OpenAIErrorType(object json.RawMessage) string {
	if code := Text(object, "code"); code != "" {
		return code
	}
	if kind := Text(object, "type"); kind != "" {
		return kind
	}
	return "error"
}

// ReadOpenAIUsage reads a usage of OpenAI's APIs or of a compatible server, which may pass on the usage of
// Google or Cohere. Servers report the cached tokens under several names, included in the prompt or in addition
// to it. A report without a prompt is ignored.
func ReadOpenAIUsage(usage *Usage, raw json.RawMessage) {
	counts := countsOf(raw)
	prompt := counts.first("prompt_tokens", "input_tokens", "prompt_token_count")
	if prompt < 0 || prompt == 0 && usage.Reported {
		return
	}
	read := Usage{Reported: true, Output: max(0, counts.first("completion_tokens", "output_tokens", "candidates_token_count"))}
	read.CacheRead = counts.most("cached_tokens", "cached_input_tokens", "num_cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_read_tokens", "cached_prompt_tokens", "cached_content_token_count")
	read.CacheWrite = counts.most("cache_write_tokens", "cache_write_input_tokens", "cache_creation_input_tokens", "cache_creation_tokens", "cached_creation_tokens")
	total, cached := counts.first("total_tokens"), read.CacheRead+read.CacheWrite
	prompt += counts["tool_use_prompt_token_count"]
	read.Output += counts["thoughts_token_count"]
	if thought := counts.first("reasoning_tokens"); thought > 0 && total == prompt+read.Output+thought {
		read.Output += thought // xAI and Google count it in addition to the answer
	}
	read.Input = prompt - cached
	switch most := max(read.CacheRead, read.CacheWrite); {
	case read.Input < 0 && most <= prompt && total == prompt+read.Output:
		read.Input = prompt - most // OpenRouter counts Google's written tokens as read too
	case read.Input < 0 || cached > 0 && total == prompt+cached+read.Output:
		read.Input = prompt
	}
	*usage = read
}

// counts are the counts of a usage and its details, by name.
type counts map[string]int

func countsOf(usage json.RawMessage) counts {
	found := counts{}
	billed := Get(usage, "billed_units") // Cohere's other tokens include some that it doesn't bill
	for name, value := range Members(usage) {
		switch lower := strings.ToLower(string(name)); {
		case lower == "tokens" && billed != nil:
		case lower == "tokens", lower == "billed_units", strings.HasSuffix(lower, "details"):
			for name, value := range Members(value) {
				found.take(string(name), value)
			}
		default:
			found.take(string(name), value)
		}
	}
	return found
}

// take adds a count. Some gateways write Amazon Bedrock's names, such as cacheReadInputTokens.
func (c counts) take(name string, value json.RawMessage) {
	if number, ok := Count(value); ok {
		if strings.ToLower(name) != name {
			name = strings.ToLower(capitals.Compiled().ReplaceAllString(name, "_$0"))
		}
		c[name] = max(c[name], number)
	}
}

var capitals = expression.New(`[A-Z]`)

// first returns the first existing count; -1 if all are missing.
func (c counts) first(names ...string) int {
	for _, name := range names {
		if count, has := c[name]; has {
			return count
		}
	}
	return -1
}

// most returns the largest of several counts of the same quantity.
func (c counts) most(names ...string) int {
	most := 0
	for _, name := range names {
		most = max(most, c[name])
	}
	return most
}
