package anthropic

import (
	"palimpsest/pipeline/wire"
)

// Traits implements wire.Codec.
func (Codec) Traits() wire.Traits {
	return wire.Traits{
		Provider: "anthropic", Path: "/v1/messages", CountPath: "/v1/messages/count_tokens", VersionHeader: "Anthropic-Version", Version: "2023-06-01",
		Beside: `"max_tokens": 4096`, MarksCache: true, ReleasesThinking: true, InstructsTools: true,
	}
}

// Recognize implements wire.Codec. Only Anthropic has system and max_tokens, and its messages have neither
// the roles nor the calls of Chat Completions.
func (Codec) Recognize(hints wire.Hints) int {
	switch {
	case !hints.Has("messages") || hints.Has("input"):
		return 0
	case hints.Has("system"):
		return wire.Certain
	case hints.Has("max_tokens") && !hints.HasChatRoles:
		return wire.Likely
	default:
		return 0
	}
}

// Compose returns the body of one of our requests: no tools, and no thinking if the model would otherwise
// think without being asked.
func (Codec) Compose(question wire.Question) ([]byte, error) {
	type thinking struct {
		Type string `json:"type"`
	}
	body := struct {
		Model     string             `json:"model"`
		MaxTokens int                `json:"max_tokens"`
		Thinking  *thinking          `json:"thinking,omitempty"`
		System    string             `json:"system"`
		Messages  []wire.TextMessage `json:"messages"`
	}{Model: question.Model, MaxTokens: question.MaxOutput, System: question.System, Messages: []wire.TextMessage{{Role: "user", Content: question.User}}}
	if question.NoThinking {
		body.Thinking = &thinking{Type: "disabled"}
	}
	return wire.EncodeBody(body)
}

// Repeat returns a body with max_tokens, which the API requires. Since the API rejects a history with tool
// calls but without tools, the body names the tools and forbids their use.
func (c Codec) Repeat(repetition wire.Repetition) ([]byte, error) {
	body := map[string]any{"model": repetition.Model, c.List(): repetition.Messages, "max_tokens": repetition.MaxOutput}
	if repetition.Stream {
		body["stream"] = true
	}
	if len(repetition.Tools) > 0 {
		body["tools"], body["tool_choice"] = onlyNamed(repetition.Tools), map[string]string{"type": "none"}
	}
	return wire.EncodeBody(body)
}

// onlyNamed returns tool definitions that contain only the names.
func onlyNamed(tools []string) []map[string]any {
	definitions := make([]map[string]any, len(tools))
	for i, name := range tools {
		definitions[i] = map[string]any{"name": name, "description": "Its definition is not archived.", "input_schema": map[string]any{"type": "object"}}
	}
	return definitions
}

// Reuse implements wire.Codec.
func (Codec) Reuse() wire.Reuse {
	return wire.Reuse{
		Member: memberUse, Ends: []string{"end_turn", "stop_sequence"}, TextType: "text", ClientTools: []string{"", "custom"},
	}
}

// memberUse follows https://platform.claude.com/docs/en/api/messages/create.
func memberUse(name string) wire.MemberUse {
	switch name {
	case "messages":
		return wire.Conversation
	case "tools":
		return wire.Tools
	case "system":
		return wire.System
	case "model", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "tool_choice", "thinking",
		"output_config", "output_format", "service_tier", "inference_geo", "speed":
		return wire.Counts
	case "stream", "metadata", "cache_control": // metadata holds only user_id
		return wire.Formatting
	default:
		return wire.Unknown
	}
}
