package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// MaxError is how many bytes of a provider's error are read to understand it.
const MaxError = 64 << 10

// KeepError returns an error of a provider's in memory of its own, for Answer.Error.
func KeepError(raw json.RawMessage) json.RawMessage {
	if len(raw) > MaxError {
		return nil
	}
	return bytes.Clone(raw)
}

// Overflow is a provider's word that a prompt is too long or its body too large. What it does not say
// is 0.
type Overflow struct {
	Tokens   int // of the prompt, as the provider counted them
	Reserved int // for the answer, where the provider counts them too
	Window   int // the model's context window

	// IsHeavy says that the body has too many bytes, whatever its tokens.
	IsHeavy bool
}

// Limit returns how many tokens the prompt may have; 0 if the provider does not say.
func (o Overflow) Limit() int { return max(0, o.Window-o.Reserved) }

// numbersIn returns the numbers of a message that reads like pattern, in which #
// stands for a number and what surrounds it is the same in every message. ok is
// false if it reads otherwise. Text before and behind the pattern is left aside.
func numbersIn(message, pattern string) (numbers []int, ok bool) {
	parts := strings.Split(pattern, "#")
	_, rest, ok := strings.Cut(message, parts[0])
	for _, part := range parts[1:] {
		if !ok {
			return nil, false
		}
		end := 0
		for end < len(rest) && rest[end]-'0' <= 9 {
			end++
		}
		number, err := strconv.Atoi(rest[:end])
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, number)
		rest, ok = strings.CutPrefix(rest[end:], part)
	}
	return numbers, ok
}

// AnthropicOverflow reads an error of Anthropic's API, or of a provider that speaks
// its dialect; ok is false if it tells of anything else than a prompt that is too
// long or a body that is too large.
func AnthropicOverflow(status int, body json.RawMessage) (said Overflow, ok bool) {
	return readOverflow(status, Get(body, "error"))
}

// OpenAIOverflow reads an error of OpenAI's APIs, or of a provider that speaks their
// dialect; ok is false if it tells of anything else than a prompt that is too long
// or a body that is too large.
func OpenAIOverflow(status int, body json.RawMessage) (said Overflow, ok bool) {
	return readOverflow(status, Get(body, "error"))
}

// StreamOverflow is OpenAIOverflow for an error object inside a stream.
func StreamOverflow(problem json.RawMessage) (said Overflow, ok bool) {
	return readOverflow(http.StatusBadRequest, problem)
}

// readOverflow reads the error object of a refusal. Status 413 is about the body's
// bytes, no matter who says it and however: what stands before a provider answers in no
// dialect.
func readOverflow(status int, problem json.RawMessage) (said Overflow, ok bool) {
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
		return Overflow{}, false
	}
	message, code := Text(problem, "message"), Text(problem, "code")
	if code == "rate_limit_exceeded" || isAboutRate(message) {
		return Overflow{}, false
	}
	if said, ok = worded(message); ok {
		return said, true
	}
	window, _ := Int(Get(problem, "n_ctx")) // llama.cpp
	tokens, _ := Int(Get(problem, "n_prompt_tokens"))
	kind := Text(problem, "type")
	switch {
	case code == "context_length_exceeded" || kind == "exceed_context_size_error":
		return Overflow{Tokens: tokens, Window: window}, true
	case status == http.StatusRequestEntityTooLarge || kind == "request_too_large" || code == "request_too_large":
		return Overflow{IsHeavy: true}, true
	}
	return Overflow{}, false
}

// isAboutRate reports whether a message tells of too much in too little time, which
// a smaller prompt would not mend.
func isAboutRate(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{"rate limit", "too many requests", "per minute", "per day", "quota", "throttl", "please wait"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// wording is how a provider says that a prompt is too long.
type wording struct {
	pattern string // as numbersIn takes it
	numbers string // what each is: p the prompt, r reserved for the answer, w the window, - none of them
}

// wordings are the words with numbers, the most exact first.
func wordings() []wording {
	return []wording{
		{"prompt is too long: # tokens > # maximum", "pw"},                                                                       // Anthropic
		{"input length and `max_tokens` exceed context limit: # + # > #", "prw"},                                                 // Anthropic
		{"maximum context length is # tokens. However, your messages resulted in # tokens", "wp"},                                // OpenAI
		{"maximum context length is # tokens. However, you requested # tokens (# in the messages, # in the completion)", "w-pr"}, // OpenAI, vLLM
		{"maximum context length is # tokens. However, you requested about # tokens (# of text input, # in the output)", "w-pr"}, // OpenRouter
		{"maximum context length is # tokens. However, your request has # input tokens", "wp"},                                   // vLLM
		{"maximum context length is # tokens", "w"},                                                                              // OpenRouter and others
		{"input token count (#) exceeds the maximum number of tokens allowed (#)", "pw"},                                         // Google
		{"maximum prompt length is # but the request contains # tokens", "wp"},                                                   // xAI
		{"prompt token count of # exceeds the limit of #", "pw"},                                                                 // GitHub Copilot
		{"exceeded model token limit: # (requested: #)", "wp"},                                                                   // Kimi
		{"Prompt contains # tokens and # draft tokens, too large for model with # maximum context length", "p-w"},                // Mistral
		{"too large for model with # maximum context length", "w"},                                                               // Mistral
		{"input (# tokens) is longer than the model's context length (# tokens)", "pw"},                                          // Together
		{"exceeds the maximum context length of # tokens", "w"},                                                                  // LiteLLM
		{"exceeds the model's maximum context length of # tokens", "w"},                                                          // LiteLLM
		{"exceeds the maximum allowed input length of # tokens", "w"},                                                            // Poolside
		{"request (# tokens) exceeds the available context size (# tokens)", "pw"},                                               // llama.cpp
	}
}

// numberless are the words without numbers, in lower case.
func numberless() []string {
	return []string{
		"prompt is too long",                    // Anthropic
		"input is too long for requested model", // Bedrock
		"your input exceeds the context window", // OpenAI
		"exceeds the context window of this",    // OpenAI
		"reduce the length of the messages",     // Groq
		"exceeds the available context size",    // llama.cpp
		"greater than the context length",       // LM Studio
		"context window exceeds limit",          // MiniMax
		"prompt too long; exceeded",             // Ollama
		"model_context_window_exceeded",         // z.ai
		"context_length_exceeded",               // and providers that say no more than that
		"context length exceeded",
		"token limit exceeded",
		"too many tokens",
	}
}

// worded reads a message that tells of a prompt that is too long. One that finds
// fault with a place of the request may quote what stands there: it does not.
func worded(message string) (said Overflow, ok bool) {
	for _, start := range []string{"messages.", "messages[", "input[", "system.", "tools."} {
		if strings.HasPrefix(message, start) {
			return Overflow{}, false
		}
	}
	for _, wording := range wordings() {
		numbers, is := numbersIn(message, wording.pattern)
		if !is {
			continue
		}
		for i, number := range numbers {
			switch wording.numbers[i] {
			case 'p':
				said.Tokens = number
			case 'r':
				said.Reserved = number
			case 'w':
				said.Window = number
			}
		}
		return said, true
	}
	message = strings.ToLower(message)
	for _, words := range numberless() {
		if strings.Contains(message, words) {
			return Overflow{}, true
		}
	}
	return Overflow{}, false
}
