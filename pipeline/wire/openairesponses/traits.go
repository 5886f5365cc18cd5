package openairesponses

import (
	"palimpsest/pipeline/wire"
)

// Traits implements wire.Codec.
func (Codec) Traits() wire.Traits {
	return wire.Traits{
		Provider: "openai", Path: "/v1/responses", CountPath: "/v1/responses/input_tokens", CompactPath: "/v1/responses/compact",
		Beside: `"store": false`, HasWebSocket: true,
	}
}

// Recognize implements wire.Codec.
func (Codec) Recognize(hints wire.Hints) int {
	if hints.Has("input") && !hints.IsInteraction() {
		return wire.Certain
	}
	return 0
}

// Compose returns the body of one of our requests: no tools, the least reasoning, and no storage by the
// provider.
func (Codec) Compose(question wire.Question) ([]byte, error) {
	type reasoning struct {
		Effort string `json:"effort"`
	}
	body := struct {
		Model           string             `json:"model"`
		MaxOutputTokens int                `json:"max_output_tokens"`
		Reasoning       *reasoning         `json:"reasoning,omitempty"`
		Store           bool               `json:"store"`
		Instructions    string             `json:"instructions"`
		Input           []wire.TextMessage `json:"input"`
	}{
		Model: question.Model, MaxOutputTokens: question.MaxOutput, Instructions: question.System,
		Input: []wire.TextMessage{{Role: "user", Content: question.User}},
	}
	if question.Effort != "" {
		body.Reasoning = &reasoning{Effort: question.Effort}
	}
	return wire.EncodeBody(body)
}

// Repeat returns a body that the provider does not store.
func (c Codec) Repeat(repetition wire.Repetition) ([]byte, error) {
	body := map[string]any{"model": repetition.Model, c.List(): repetition.Messages, "store": false}
	if repetition.Stream {
		body["stream"] = true
	}
	return wire.EncodeBody(body)
}

// Reuse implements wire.Codec.
func (Codec) Reuse() wire.Reuse {
	return wire.Reuse{
		Member: memberUse, Ends: []string{"completed"}, SystemInList: true, ItemType: "message", TextType: "input_text",
		ClientTools: []string{"function", "custom"},
		Requirements: []wire.Requirement{
			{Member: "store", Value: "false", Present: true, Stored: true}, // if absent, the provider stores the answer
			{Member: "background", Value: "false", Stored: true},
		},
	}
}

// memberUse follows https://platform.openai.com/docs/api-reference/responses/create.
func memberUse(name string) wire.MemberUse {
	switch name {
	case "input":
		return wire.Conversation
	case "tools":
		return wire.Tools
	case "instructions":
		return wire.System
	case "model", "max_output_tokens", "temperature", "top_p", "text", "reasoning", "service_tier", "truncation", "top_logprobs",
		"tool_choice", "parallel_tool_calls", "max_tool_calls", "include", "metadata": // the answer repeats metadata
		return wire.Counts
	case "stream", "stream_options", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "store", "background":
		return wire.Formatting // Reuse restricts the values of store and background
	default:
		return wire.Unknown
	}
}
