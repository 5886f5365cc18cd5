package ipc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline"
)

// Config holds the settings of the module ipc, which compresses the oldest turns.
type Config struct {
	// TargetUtilization is the share of the context window above which an epoch happens.
	TargetUtilization float64 `json:"targetUtilization" yaml:"targetUtilization"`

	// CompressTo is the size that an epoch compresses to, as a share of the part that can change:
	// the window without system prompt, tools and room for the answer; see Goal.
	CompressTo float64 `json:"compressTo" yaml:"compressTo"`

	// MinClear is the minimum that an epoch must free, as a share of the part that can change.
	MinClear float64 `json:"minClear" yaml:"minClear"`

	// PreserveLastTurns is how many of the newest turns stay as they are.
	PreserveLastTurns int `json:"preserveLastTurns" yaml:"preserveLastTurns"`

	// PreserveTokens is how many of the newest tokens stay as they are, in whole turns. It applies
	// if it keeps more than PreserveLastTurns does.
	PreserveTokens int `json:"preserveTokens" yaml:"preserveTokens"`

	// PreserveSystem keeps the system prompt and leading system messages. It is reserved: no level
	// touches them, whatever its value.
	PreserveSystem bool `json:"preserveSystem" yaml:"preserveSystem"`

	// ArchiveToBlob archives the originals of compressed messages. Without it there are no new
	// epochs.
	ArchiveToBlob bool `json:"archiveToBlob" yaml:"archiveToBlob"`

	// DeepestLevel is the highest level that a turn may reach; 0 turns compression off.
	DeepestLevel int `json:"deepestLevel" yaml:"deepestLevel"`

	// BlockTokens caps all L3 text of a lane, in o200k tokens.
	BlockTokens int `json:"blockTokens" yaml:"blockTokens"`

	// ObservationMasking replaces tool results at L1 by a placeholder instead of their beginning.
	ObservationMasking bool `json:"observationMasking" yaml:"observationMasking"`

	// LLMCompression has a model write, in the background, a summary of the oldest turns that
	// replaces L2 and L3.
	LLMCompression LLMCompression `json:"llmCompression" yaml:"llmCompression"`

	// IdleUtilization is the share above which an epoch is planned in the background
	// and made on the first request after the provider's cache has gone cold.
	IdleUtilization float64 `json:"idleUtilization" yaml:"idleUtilization"`

	// ContextWindow is how many tokens a prompt may have; 0 means the model's own window. Only the
	// model's own window reserves room for the answer.
	ContextWindow Window `json:"contextWindow" yaml:"contextWindow"`

	// KeepLastLadder are the numbers of turns that the preserved tail shrinks to, one after the
	// other, if an epoch would otherwise free too little. After its end, the package ipc has
	// further steps.
	KeepLastLadder []int `json:"keepLastLadder" yaml:"keepLastLadder,flow"`

	// MaxBytes is how many bytes a prompt may have. Above it media are replaced by placeholders,
	// the oldest first, however few tokens they are. Anthropic takes 32 MB; 0 means no limit.
	MaxBytes int `json:"maxBytes" yaml:"maxBytes"`

	// WarnAfterEpochs is the number of epochs after which a lane shows a warning, in the answers'
	// X-Palimpsest-Warning and on its page; 0 disables it.
	WarnAfterEpochs int `json:"warnAfterEpochs" yaml:"warnAfterEpochs"`

	// Trigger chooses when an epoch happens below TargetUtilization: TriggerWindow or
	// TriggerBreakEven.
	Trigger string `json:"trigger" yaml:"trigger"`

	// MinContext is the size in tokens up to which TriggerBreakEven leaves prompts unchanged.
	MinContext int `json:"minContext" yaml:"minContext"`

	// Repeats has no effect; stored configs hold it.
	Repeats string `json:"repeats" yaml:"repeats"`
}

// DefaultConfig returns the settings of a workspace without its own.
func DefaultConfig() Config {
	return Config{
		TargetUtilization: 0.80,
		CompressTo:        0.15,
		MinClear:          0.10,
		PreserveLastTurns: 5,
		PreserveTokens:    22_000,
		PreserveSystem:    true,
		ArchiveToBlob:     true,
		DeepestLevel:      3,
		BlockTokens:       8_000,
		IdleUtilization:   0.50,
		KeepLastLadder:    []int{16, 12, 8, 6, 3, 1},
		MaxBytes:          20 << 20,
		WarnAfterEpochs:   3,
		Trigger:           TriggerWindow,
		MinContext:        50_000,
		Repeats:           "keep",
	}
}

// ModuleName implements pipeline.Settings.
func (Config) ModuleName() string { return Name }

// Target returns the size in tokens above which a prompt with a limit is compressed; 0 if it never
// is.
func (c Config) Target(limit int) int {
	if c.DeepestLevel == 0 {
		return 0
	}
	return int(c.TargetUtilization * float64(limit))
}

// Inconsistent returns compressTo with a message for the user if it is above the target. A lower
// target from a layer above lowers the goal instead; see Goal.
func (c Config) Inconsistent() (setting, message string) {
	if c.CompressTo < c.TargetUtilization {
		return "", ""
	}
	return "compressTo", fmt.Sprintf("%v is not below targetUtilization, which is %v", c.CompressTo, c.TargetUtilization)
}

// The values of Trigger. TargetUtilization is the ceiling in both.
const (
	// TriggerWindow acts for the window alone.
	TriggerWindow = "window"
	// TriggerBreakEven acts as soon as the cost of reading removable content has reached the cost
	// of the epoch.
	TriggerBreakEven = "break-even"
)

// OtherTrigger returns the other one of the two triggers.
func OtherTrigger(trigger string) string {
	if trigger == TriggerBreakEven {
		return TriggerWindow
	}
	return TriggerBreakEven
}

// leastShare bounds PreserveTokens as a share of the limit. Otherwise each compaction in a small
// window would free little.
const leastShare = 0.4

// Goal returns the size that an epoch compresses down to. fixed is the part of the limit before the
// conversation, newest is PreserveTokens, all in the same unit. It is CompressTo of the part that
// can change, or PreserveTokens if that is more. It is less if the next epoch would follow too soon:
// if either would leave less room than twice MinClear below the target's share of that part, or than
// MinClear below the target. It never takes more than half of the room below the target, unless it
// leaves three times MinClear until the size that the prompt may grow to.
func (c Config) Goal(limit, fixed, newest float64) float64 {
	high, free := c.TargetUtilization*limit, limit-fixed
	room := max(min(c.TargetUtilization*free-2*c.MinClear*free, high-fixed-c.MinClear*free), (high-fixed)/2, 0)
	room = max(room, min(c.most(limit, fixed)-fixed-3*c.MinClear*free, high-fixed))
	return fixed + min(max(c.CompressTo*free, min(newest, leastShare*limit)), room)
}

// fixedAbove is the share of the part before the conversation by which a prompt may grow above its
// target. Behind a large part the room below the target would be small.
const fixedAbove = 1.0 / 3

// most returns the size that a prompt may grow to while its cache is warm.
func (c Config) most(limit, fixed float64) float64 {
	high := c.TargetUtilization * limit
	return max(high, min(high+fixedAbove*fixed, nearLimit*limit))
}

// WarnsAfter returns the number of epochs after which a lane shows a warning; 0 disables it.
// TriggerBreakEven disables it because it is meant to make many epochs.
func (c Config) WarnsAfter() int {
	if c.Trigger == TriggerBreakEven {
		return 0
	}
	return c.WarnAfterEpochs
}

// IdleAbove returns the size in tokens, for a limit, above which a prompt gets an epoch on a cold
// cache.
func (c Config) IdleAbove(limit int) int {
	if c.Trigger == TriggerBreakEven {
		return c.MinContext
	}
	return int(c.IdleUtilization * float64(limit))
}

// configOf returns the module's settings for an exchange.
func configOf(exchange *pipeline.View) Config {
	return pipeline.SettingsOf[Config](exchange.Config)
}

// Window is a context window in tokens; 0, written "auto", is the model's own.
type Window int

// Tokens returns the window in tokens; 0 means the model's own.
func (w Window) Tokens() int { return int(w) }

// MarshalYAML implements yaml.Marshaler.
func (w Window) MarshalYAML() (any, error) {
	if w == 0 {
		return "auto", nil
	}
	return int(w), nil
}

// MarshalJSON implements json.Marshaler.
func (w Window) MarshalJSON() ([]byte, error) {
	if w == 0 {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(int(w))
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *Window) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == "auto" {
		*w = 0
		return nil
	}
	return node.Decode((*int)(w))
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *Window) UnmarshalJSON(data []byte) error {
	if string(data) == `"auto"` {
		*w = 0
		return nil
	}
	return json.Unmarshal(data, (*int)(w))
}

func checkWindow(window Window) string {
	const lowest, highest = 1_000, 100_000_000
	if window == 0 || window >= lowest && window <= highest {
		return ""
	}
	return fmt.Sprintf("%d is out of range; allowed is auto or %d to %d", window, lowest, highest)
}

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
