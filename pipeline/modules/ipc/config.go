package ipc

import (
	"fmt"

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
