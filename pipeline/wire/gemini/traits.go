package gemini

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Traits implements wire.Codec.
func (Codec) Traits() wire.Traits {
	return wire.Traits{
		Provider: "gemini", Path: "/v1beta/models/{model}:generateContent", CountPath: "/v1beta/models/{model}:countTokens",
		Root: "/v1beta/", Address: address,
	}
}

// Recognize implements wire.Codec. No other format has contents.
func (Codec) Recognize(hints wire.Hints) int {
	if hints.Has("contents") {
		return wire.Certain
	}
	return 0
}

// content is a content that holds one text.
type content struct {
	Role  string     `json:"role,omitempty"`
	Parts []partText `json:"parts"`
}

type partText struct {
	Text string `json:"text"`
}

// Compose returns the body of one of our requests: no tools, the least thinking.
func (Codec) Compose(question wire.Question) ([]byte, error) {
	type thinking struct {
		Budget int `json:"thinkingBudget"`
	}
	type config struct {
		MaxOutputTokens int       `json:"maxOutputTokens"`
		Thinking        *thinking `json:"thinkingConfig,omitempty"`
	}
	body := struct {
		Model    string    `json:"model"`
		System   content   `json:"systemInstruction"`
		Config   config    `json:"generationConfig"`
		Contents []content `json:"contents"`
	}{
		Model: question.Model, System: content{Parts: []partText{{question.System}}}, Config: config{MaxOutputTokens: question.MaxOutput},
		Contents: []content{{Role: "user", Parts: []partText{{question.User}}}},
	}
	if question.NoThinking {
		body.Config.Thinking = &thinking{Budget: leastThinking}
	}
	return wire.EncodeBody(body)
}

// leastThinking is the smallest budget in tokens that models take whose thinking can't be turned off
// (https://ai.google.dev/gemini-api/docs/thinking).
const leastThinking = 128

// Repeat returns a body without tools, because the API accepts a history with calls without them.
func (c Codec) Repeat(repetition wire.Repetition) ([]byte, error) {
	return wire.EncodeBody(map[string]any{"model": repetition.Model, "stream": repetition.Stream, c.List(): repetition.Messages})
}

// Reuse implements wire.Codec.
func (Codec) Reuse() wire.Reuse {
	return wire.Reuse{
		Member: memberUse, Ends: []string{"stop"},
		Requirements: []wire.Requirement{{Member: "tools", Value: "[]"}},
	}
}

// memberUse follows https://ai.google.dev/api/generate-content. Tools of this API have no type that tells the
// client's own from Google's, so that an answer with tools is not reused.
func memberUse(name string) wire.MemberUse {
	switch name {
	case "contents":
		return wire.Conversation
	case "systemInstruction", "system_instruction":
		return wire.System
	case "model", "generationConfig", "generation_config", "safetySettings", "safety_settings", "tools":
		return wire.Counts
	case "stream":
		return wire.Formatting
	default:
		return wire.Unknown
	}
}

// answerPart and the following are an answer without a model.
type answer struct {
	Candidates []answerCandidate `json:"candidates"`
	Usage      answerUsage       `json:"usageMetadata"`
	Model      string            `json:"modelVersion"`
	ID         string            `json:"responseId"`
}

type answerCandidate struct {
	Content      content `json:"content"`
	FinishReason string  `json:"finishReason"`
	Index        int     `json:"index"`
}

type answerUsage struct {
	Prompt     int `json:"promptTokenCount"`
	Candidates int `json:"candidatesTokenCount"`
	Total      int `json:"totalTokenCount"`
}

// Answer implements wire.Answerer.
func (Codec) Answer(said wire.Said, stream bool) []byte {
	whole := answer{
		Candidates: []answerCandidate{{Content: content{Role: "model", Parts: []partText{{said.Text}}}, FinishReason: "STOP"}},
		Model:      said.Model, ID: said.ID,
	}
	body, err := json.Marshal(whole)
	if err != nil {
		return nil // unreachable: it only holds strings and numbers
	}
	if !stream {
		return body
	}
	return append(append([]byte("data: "), body...), "\n\n"...)
}

// Interface guard.
var _ wire.Answerer = Codec{}
