package ipc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
)

// SameModel as the model of LLMCompression means the conversation's own model.
const SameModel = "same"

// LLMCompression configures which model writes summaries, and how. The zero value, written "false",
// disables it.
type LLMCompression struct {
	Model     string        // a model of the conversation's provider, or SameModel
	Prompt    string        // replaces our own instructions; "" means our own
	MaxTokens int           // limit of the answer; 0 means the limit of the summary
	Timeout   time.Duration // total; 0 means 30 s

	// ReserveTokens has a summary written as soon as a prompt leaves fewer than these tokens of its
	// limit; 0 means only after each epoch.
	ReserveTokens int

	// KeepRecentTokens are the newest tokens that such a summary leaves out; 0 means
	// PreserveTokens.
	KeepRecentTokens int
}

// llmCompression is the written form of LLMCompression if it is enabled.
type llmCompression struct {
	Model     string `json:"model"               yaml:"model"`
	Prompt    string `json:"prompt,omitempty"    yaml:"prompt,omitempty"`
	MaxTokens int    `json:"maxTokens,omitempty" yaml:"maxTokens,omitempty"`
	Timeout   string `json:"timeout,omitempty"   yaml:"timeout,omitempty"`

	ReserveTokens    int `json:"reserveTokens,omitempty"    yaml:"reserveTokens,omitempty"`
	KeepRecentTokens int `json:"keepRecentTokens,omitempty" yaml:"keepRecentTokens,omitempty"`
}

func (l LLMCompression) written() llmCompression {
	written := llmCompression{
		Model: l.Model, Prompt: l.Prompt, MaxTokens: l.MaxTokens,
		ReserveTokens: l.ReserveTokens, KeepRecentTokens: l.KeepRecentTokens,
	}
	if l.Timeout > 0 {
		written.Timeout = l.Timeout.String()
	}
	return written
}

// MarshalYAML implements yaml.Marshaler.
func (l LLMCompression) MarshalYAML() (any, error) {
	if l == (LLMCompression{}) {
		return false, nil
	}
	return l.written(), nil
}

// MarshalJSON implements json.Marshaler.
func (l LLMCompression) MarshalJSON() ([]byte, error) {
	if l == (LLMCompression{}) {
		return []byte("false"), nil
	}
	return json.Marshal(l.written())
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *LLMCompression) UnmarshalJSON(data []byte) error {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil || len(node.Content) == 0 {
		return fmt.Errorf("llmCompression: %w", err)
	}
	return l.UnmarshalYAML(node.Content[0])
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *LLMCompression) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Value == "false" {
		*l = LLMCompression{}
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return errors.New("is neither false nor {model, prompt, maxTokens, timeout, reserveTokens, keepRecentTokens}")
	}
	for i := 0; i < len(node.Content); i += 2 {
		name := node.Content[i].Value
		switch name {
		case "model", "prompt", "timeout":
		case "maxTokens", "reserveTokens", "keepRecentTokens":
			if number, has := pipeline.Fraction(node.Content[i+1]); has { // the decoder would truncate it
				return fmt.Errorf("%s %q must be a whole number", name, number)
			}
		default:
			return fmt.Errorf("%q is unknown; known are model, prompt, maxTokens, timeout, reserveTokens, keepRecentTokens", name)
		}
	}
	var written llmCompression
	if err := node.Decode(&written); err != nil {
		return err
	}
	*l = LLMCompression{
		Model: written.Model, Prompt: written.Prompt, MaxTokens: written.MaxTokens,
		ReserveTokens: written.ReserveTokens, KeepRecentTokens: written.KeepRecentTokens,
	}
	if written.Timeout == "" {
		return nil
	}
	timeout, err := time.ParseDuration(written.Timeout)
	if err != nil {
		return fmt.Errorf("timeout %q is no duration such as 30s", written.Timeout)
	}
	l.Timeout = timeout
	return nil
}

// maxPrompt bounds a workspace's own prompt for summaries, in bytes.
const maxPrompt = 20_000

// llmCount is a non-negative whole number among the members of llmCompression.
type llmCount struct {
	name    string
	at      func(*LLMCompression) int
	highest int
}

func llmCounts() []llmCount {
	return []llmCount{
		{"maxTokens", func(l *LLMCompression) int { return l.MaxTokens }, 100_000},
		{"reserveTokens", func(l *LLMCompression) int { return l.ReserveTokens }, 1_000_000},
		{"keepRecentTokens", func(l *LLMCompression) int { return l.KeepRecentTokens }, 1_000_000},
	}
}

func checkLLM(llm LLMCompression) string {
	if llm == (LLMCompression{}) {
		return ""
	}
	if llm.Model == "" {
		return "names no model; write {model: …} or false"
	}
	for _, count := range llmCounts() {
		if value := count.at(&llm); value < 0 || value > count.highest {
			return fmt.Sprintf("%s %d is out of range; allowed is 0 to %d", count.name, value, count.highest)
		}
	}
	if llm.Timeout < 0 || llm.Timeout > 10*time.Minute {
		return "timeout " + llm.Timeout.String() + " is out of range; allowed is 0s to 10m"
	}
	if len(llm.Prompt) > maxPrompt {
		return fmt.Sprintf("prompt of %d bytes is too long; allowed are %d", len(llm.Prompt), maxPrompt)
	}
	return ""
}
