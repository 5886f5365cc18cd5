package geminiinteractions

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// path is the endpoint, and the beginning of the paths of stored interactions.
const path = "/v1beta/interactions"

// Traits implements wire.Codec.
func (Codec) Traits() wire.Traits {
	return wire.Traits{Provider: "gemini", Path: path, Root: path, Beside: `"store": false`}
}

// Recognize implements wire.Codec.
func (Codec) Recognize(hints wire.Hints) int {
	if hints.IsInteraction() {
		return wire.Certain
	}
	return 0
}

// Compose returns the body of one of our requests: no tools, little thinking, and no storage by the provider.
func (Codec) Compose(question wire.Question) ([]byte, error) {
	type config struct {
		MaxOutputTokens int    `json:"max_output_tokens"`
		ThinkingLevel   string `json:"thinking_level,omitempty"`
	}
	body := struct {
		Model  string       `json:"model"`
		Store  bool         `json:"store"`
		Config config       `json:"generation_config"`
		System string       `json:"system_instruction"`
		Input  []answerStep `json:"input"`
	}{
		Model: question.Model, Config: config{MaxOutputTokens: question.MaxOutput}, System: question.System,
		Input: []answerStep{{Type: userInput, Content: []answerText{{Type: "text", Text: question.User}}}},
	}
	if question.NoThinking {
		body.Config.ThinkingLevel = "low" // the least that all models take
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
		Member: memberUse, Ends: []string{"completed"}, TextType: "text", ClientTools: []string{"function"},
		Requirements: []wire.Requirement{
			{Member: "store", Value: "false", Present: true, Stored: true}, // if absent, the provider stores the answer
			{Member: "background", Value: "false", Stored: true},
		},
	}
}

// memberUse follows https://ai.google.dev/api/interactions-api.
func memberUse(name string) wire.MemberUse {
	switch name {
	case "input":
		return wire.Conversation
	case "tools":
		return wire.Tools
	case "system_instruction":
		return wire.System
	case "model", "generation_config", "response_format", "safety_settings", "service_tier":
		return wire.Counts
	case "stream", "store", "background", "labels":
		return wire.Formatting // Reuse restricts the values of store and background
	default:
		return wire.Unknown
	}
}

// answerOf and the following are an answer without a model.
type answerOf struct {
	ID     string       `json:"id"`
	Object string       `json:"object"`
	Model  string       `json:"model"`
	Status string       `json:"status"`
	Steps  []answerStep `json:"steps,omitempty"`
	Usage  *answerUsage `json:"usage,omitempty"`
}

type answerStep struct {
	Type    string       `json:"type"`
	Content []answerText `json:"content,omitempty"`
}

type answerText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type answerUsage struct {
	Input  int `json:"total_input_tokens"`
	Output int `json:"total_output_tokens"`
	Total  int `json:"total_tokens"`
}

type answerEvent struct {
	Type        string      `json:"event_type"`
	Index       *int        `json:"index,omitempty"`
	Interaction *answerOf   `json:"interaction,omitempty"`
	Step        *answerStep `json:"step,omitempty"`
	Delta       *answerText `json:"delta,omitempty"`
}

// Answer implements wire.Answerer.
func (Codec) Answer(said wire.Said, stream bool) []byte {
	text := answerText{Type: "text", Text: said.Text}
	whole := answerOf{ID: said.ID, Object: "interaction", Model: said.Model, Status: "completed", Usage: &answerUsage{}}
	if !stream {
		whole.Steps = []answerStep{{Type: modelOutput, Content: []answerText{text}}}
		body, err := json.Marshal(whole)
		if err != nil {
			return nil // unreachable: it only holds strings and numbers
		}
		return body
	}
	opening := whole
	opening.Status, opening.Usage = "in_progress", nil
	var events []byte
	for _, event := range []answerEvent{
		{Type: "interaction.created", Interaction: &opening},
		{Type: "step.start", Index: new(int), Step: &answerStep{Type: modelOutput}},
		{Type: "step.delta", Index: new(int), Delta: &text},
		{Type: "step.stop", Index: new(int)},
		{Type: "interaction.completed", Interaction: &whole},
	} {
		events = wire.AppendEvent(events, event.Type, event)
	}
	return append(events, "event: done\ndata: [DONE]\n\n"...)
}

// Interface guard.
var _ wire.Answerer = Codec{}
