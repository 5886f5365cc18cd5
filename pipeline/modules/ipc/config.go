package ipc

import (
	"fmt"

	"palimpsest/pipeline"
)

// Config are the settings of the module ipc, which compresses the oldest turns.
type Config struct {
	// TargetUtilization is the share of the context window above which an epoch happens.
	TargetUtilization float64 `json:"targetUtilization" yaml:"targetUtilization"`

	// CompressTo is what an epoch leaves, as a share of what can change: the window without system
	// prompt, tools and room for the answer; see Goal.
	CompressTo float64 `json:"compressTo" yaml:"compressTo"`

	// MinClear is what an epoch must free at least, as a share of what can change.
	MinClear float64 `json:"minClear" yaml:"minClear"`

	// PreserveLastTurns is how many of the newest turns stay as they are.
	PreserveLastTurns int `json:"preserveLastTurns" yaml:"preserveLastTurns"`

	// PreserveTokens is how many of the newest tokens stay as they are, whole
	// turns; it counts where it keeps more than PreserveLastTurns does.
	PreserveTokens int `json:"preserveTokens" yaml:"preserveTokens"`

	// PreserveSystem keeps the system prompt and leading system messages. It is reserved:
	// no level touches them, whatever it says.
	PreserveSystem bool `json:"preserveSystem" yaml:"preserveSystem"`

	// ArchiveToBlob keeps the originals of what is compressed. Without it there
	// are no new epochs.
	ArchiveToBlob bool `json:"archiveToBlob" yaml:"archiveToBlob"`

	// DeepestLevel is the level that no turn goes below; 0 turns compression off.
	DeepestLevel int `json:"deepestLevel" yaml:"deepestLevel"`

	// BlockTokens caps all L3 text of a lane, in o200k tokens.
	BlockTokens int `json:"blockTokens" yaml:"blockTokens"`

	// ObservationMasking leaves a placeholder of tool results at L1, not their start.
	ObservationMasking bool `json:"observationMasking" yaml:"observationMasking"`

	// LLMCompression has a model write, in the background, what stands for the
	// oldest turns in place of L2 and L3.
	LLMCompression LLMCompression `json:"llmCompression" yaml:"llmCompression"`

	// IdleUtilization is the share above which an epoch is planned in the background
	// and made on the first request after the provider's cache has gone cold.
	IdleUtilization float64 `json:"idleUtilization" yaml:"idleUtilization"`

	// ContextWindow is how many tokens a prompt may have; by the model's own window if it
	// is 0. Room for the answer is left in the model's own window only.
	ContextWindow Window `json:"contextWindow" yaml:"contextWindow"`

	// KeepLastLadder are the numbers of turns that the preserved tail shrinks to,
	// one after the other, where an epoch would otherwise free too little. Behind
	// its end the package ipc has further steps.
	KeepLastLadder []int `json:"keepLastLadder" yaml:"keepLastLadder,flow"`

	// MaxBytes is how many bytes a prompt may have. Above it media are replaced by
	// placeholders, the oldest first, however few tokens they are. Anthropic takes
	// 32 MB; 0: no limit.
	MaxBytes int `json:"maxBytes" yaml:"maxBytes"`

	// WarnAfterEpochs is the number of epochs from which on people are warned of a
	// lane, in the answers' X-Palimpsest-Warning and on its page; 0: never.
	WarnAfterEpochs int `json:"warnAfterEpochs" yaml:"warnAfterEpochs"`

	// Trigger says what decides when an epoch happens below TargetUtilization: TriggerWindow
	// or TriggerBreakEven.
	Trigger string `json:"trigger" yaml:"trigger"`

	// MinContext is the size in tokens up to which TriggerBreakEven touches no prompt.
	MinContext int `json:"minContext" yaml:"minContext"`

	// Repeats says what becomes of a tool result that an earlier one has said already:
	// RepeatsKeep or RepeatsPoint.
	Repeats string `json:"repeats" yaml:"repeats"`
}

// DefaultConfig returns the settings of a workspace that has set nothing.
func DefaultConfig() Config {
	return Config{
		TargetUtilization: 0.80,
		CompressTo:        0.15,
		MinClear:          0.10,
		PreserveLastTurns: 5,
		PreserveTokens:    20_000,
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
		Repeats:           RepeatsKeep,
	}
}

// ModuleName implements pipeline.Settings.
func (Config) ModuleName() string { return Name }

// Target returns the size in tokens above which a prompt is compressed that may have limit
// tokens; 0 if it never is.
func (c Config) Target(limit int) int {
	if c.DeepestLevel == 0 {
		return 0
	}
	return int(c.TargetUtilization * float64(limit))
}

// Inconsistent returns compressTo if it lies above the target, for the person who set it. A
// lower target from a layer above lowers the goal instead; see Goal.
func (c Config) Inconsistent() (setting, message string) {
	if c.CompressTo < c.TargetUtilization {
		return "", ""
	}
	return "compressTo", fmt.Sprintf("%v is not below targetUtilization, which is %v", c.CompressTo, c.TargetUtilization)
}

// What decides when an epoch happens. TargetUtilization is the ceiling in both.
const (
	// TriggerWindow acts for the window alone.
	TriggerWindow = "window"
	// TriggerBreakEven acts as soon as reading what an epoch would remove has cost as much
	// as the epoch.
	TriggerBreakEven = "break-even"
)

// What becomes of lines of a new tool result that an earlier one in the prompt has.
const (
	// RepeatsKeep leaves them.
	RepeatsKeep = "keep"
	// RepeatsPoint puts a pointer to the earlier result in their place.
	RepeatsPoint = "point"
)

// OtherTrigger returns the trigger that is not the one given.
func OtherTrigger(trigger string) string {
	if trigger == TriggerBreakEven {
		return TriggerWindow
	}
	return TriggerBreakEven
}

// leastShare bounds what PreserveTokens may ask for of what can change: in a small window each
// compaction would free little otherwise.
const leastShare = 0.4

// Goal returns what an epoch compresses down to, where fixed of the limit precedes the
// conversation, and newest is PreserveTokens, all in the same unit: CompressTo of what can change, but no
// less than what PreserveTokens asks for, and less than both where they would leave less room than
// twice MinClear below the target, but never less than half of that room.
func (c Config) Goal(limit, fixed, newest float64) float64 {
	high, free := c.TargetUtilization*limit, limit-fixed
	room := max(high-fixed-2*c.MinClear*free, (high-fixed)/2, 0)
	return fixed + min(max(c.CompressTo*free, min(newest, leastShare*free)), room)
}

// WarnsAfter returns from how many epochs of a lane on people are warned of it; 0: never.
// By TriggerBreakEven many epochs are what was asked for.
func (c Config) WarnsAfter() int {
	if c.Trigger == TriggerBreakEven {
		return 0
	}
	return c.WarnAfterEpochs
}

// IdleAbove returns how many tokens a prompt must have more than, of limit, for an epoch
// on a cold cache.
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
