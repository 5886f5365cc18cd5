package openaichat

import (
	"palimpsest/pipeline/wire"
)

// Traits implements wire.Codec.
func (Codec) Traits() wire.Traits {
	return wire.Traits{Provider: "openai", Path: "/v1/chat/completions"}
}

// Recognize implements wire.Codec. A body with messages and without Anthropic's members counts as Chat
// Completions, because most servers speak that format.
func (Codec) Recognize(hints wire.Hints) int {
	switch {
	case !hints.Has("messages"):
		return 0
	case hints.HasChatRoles:
		return wire.Likely
	default:
		return wire.Possible
	}
}

// Compose returns the body of one of our requests: no tools, the least reasoning.
func (Codec) Compose(question wire.Question) ([]byte, error) {
	body := struct {
		Model               string             `json:"model"`
		MaxTokens           int                `json:"max_tokens,omitempty"`            // for servers that only know this one
		MaxCompletionTokens int                `json:"max_completion_tokens,omitempty"` // OpenAI's own models
		ReasoningEffort     string             `json:"reasoning_effort,omitempty"`
		Messages            []wire.TextMessage `json:"messages"`
	}{
		Model: question.Model, ReasoningEffort: question.Effort,
		Messages: []wire.TextMessage{{Role: "system", Content: question.System}, {Role: "user", Content: question.User}},
	}
	if question.Compatible {
		body.MaxTokens = question.MaxOutput
	} else {
		body.MaxCompletionTokens = question.MaxOutput
	}
	return wire.EncodeBody(body)
}

// Repeat returns a body without tools, because the API accepts a history with tool calls without them.
func (c Codec) Repeat(repetition wire.Repetition) ([]byte, error) {
	body := map[string]any{"model": repetition.Model, c.List(): repetition.Messages}
	if repetition.Stream {
		body["stream"] = true
	}
	return wire.EncodeBody(body)
}

// Reuse implements wire.Codec.
func (Codec) Reuse() wire.Reuse {
	return wire.Reuse{
		Member: memberUse, Ends: []string{"stop"}, SystemInList: true, TextType: "text", ClientTools: []string{"function", "custom"},
		Requirements: []wire.Requirement{
			{Member: "store", Value: "false", Stored: true},
			{Member: "metadata", Value: "{}", Stored: true},
			{Member: "n", Value: "1"},
			{Member: "modalities", Value: `["text"]`},
		},
	}
}

// memberUse follows https://platform.openai.com/docs/api-reference/chat/create.
func memberUse(name string) wire.MemberUse {
	switch name {
	case "messages":
		return wire.Conversation
	case "tools":
		return wire.Tools
	case "model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "response_format", "reasoning_effort",
		"verbosity", "service_tier", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs",
		"tool_choice", "parallel_tool_calls", "modalities", "prediction":
		return wire.Counts
	case "stream", "stream_options", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "store", "n", "metadata":
		return wire.Formatting // Reuse restricts the values of store, n and metadata
	default:
		return wire.Unknown
	}
}
