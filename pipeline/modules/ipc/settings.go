package ipc

import (
	"fmt"
	"strconv"

	"palimpsest/pipeline"
)

// Description returns the module's description.
func Description() pipeline.Description {
	return pipeline.Description{
		Name: Name, Title: "Compression", IsStandard: true, Docs: "compaction.md",
		Does:     "Shortens the oldest turns first. Every original stays in the archive.",
		Defaults: func() pipeline.Settings { return new(DefaultConfig()) },
		Cards: []pipeline.Card{
			{Title: TargetCard, Settings: []pipeline.Setting{target()}},
			{Title: "When", Sub: "when old turns are shortened", Settings: when()},
			{Title: "Limits", Sub: "how much a compaction may shorten", Settings: limits()},
			{Title: "Summaries at L2 and L3", Sub: "a model writes them, in the background and with your provider key", Settings: []pipeline.Setting{summaries()}},
			{Title: "Details", Settings: details()},
		},
		Presets: []pipeline.Preset{
			{Name: "default", Title: "Default", Does: "Starts at four fifths of the window. Suits most coding agents."},
			{
				Name: "aggressive", Title: "Aggressive", YAML: "ipc:\n  targetUtilization: 0.5\n  preserveLastTurns: 3\n",
				Does: "Starts at half the window. Prompts are smaller, and the provider’s cache is rewritten more often.",
			},
			{
				Name: "quality-first", Title: "Quality-first", YAML: "ipc:\n  targetUtilization: 0.9\n  preserveLastTurns: 10\n",
				Does: "Starts near the limit and keeps more of the newest turns.",
			},
		},
	}
}

// TargetCard holds only the target, which the dashboard shows next to presets and a slider.
const TargetCard = "dial"

func target() pipeline.Setting {
	return pipeline.ShareField(func(c *Config) *float64 { return &c.TargetUtilization }, 0.30, 0.95, pipeline.Setting{
		Name: "targetUtilization", Label: "Target utilization",
		Hint: "share of the model’s context window that a prompt may fill before old turns are shortened; a higher value shortens later",
	})
}

// Triggers are the values of Trigger, the default first.
func Triggers() []pipeline.Option {
	return []pipeline.Option{
		{Value: TriggerWindow, Label: "Only near the limit", Meaning: "The model sees every turn word for word for as long as all of them fit."},
		{Value: TriggerBreakEven, Label: "As soon as it saves money", Meaning: "The model sees old turns in shorter forms as soon as reading them again has cost as much as shortening them."},
	}
}

func when() []pipeline.Setting {
	return []pipeline.Setting{
		pipeline.ChoiceField(func(c *Config) *string { return &c.Trigger }, pipeline.Setting{
			Name: "trigger", Label: "Compress", Options: Triggers(),
			Hint: "Only near the limit: prompts below the target are sent unchanged. As soon as it saves money: old turns are shortened once reading them again has cost as much as a compaction, so the model sees shorter forms earlier.",
		}),
		pipeline.CountField(func(c *Config) *int { return &c.MinContext }, 10_000, 10_000_000, pipeline.Setting{
			Name: "minContext", Label: "Minimum context", Unit: "tokens", Step: "1000", Hint: "A higher value keeps more old turns word for word and saves less.",
		}),
	}
}

func limits() []pipeline.Setting {
	return []pipeline.Setting{
		pipeline.ShareField(func(c *Config) *float64 { return &c.CompressTo }, 0.10, 0.90, pipeline.Setting{
			Name: "compressTo", Label: "Compress down to", Hint: "Share of the changeable part that a compaction leaves: the window without system prompt, tools and room for the answer. A lower value shortens more at once. A lower target also lowers it.",
		}),
		pipeline.ShareField(func(c *Config) *float64 { return &c.MinClear }, 0.01, 0.50, pipeline.Setting{
			Name: "minClear", Label: "Minimum to free", Hint: "Share of the changeable part. A compaction that frees less is skipped. A higher value makes fewer, larger compactions.",
		}),
		pipeline.CountField(func(c *Config) *int { return &c.PreserveLastTurns }, 1, 100, pipeline.Setting{
			Name: "preserveLastTurns", Label: "Newest turns kept verbatim", Unit: "turns", Step: "1", Hint: "A higher value keeps more turns word for word and frees less.",
		}),
		pipeline.CountField(func(c *Config) *int { return &c.PreserveTokens }, 0, 1_000_000, pipeline.Setting{
			Name: "preserveTokens", Label: "Newest tokens kept verbatim", Unit: "tokens", Step: "1000", Hint: "Applies if it keeps more than the number of turns does. Output other than files is cut first. Each compaction leaves at least this much, or 40% of the limit in a small window.",
		}),
		pipeline.ToggleField(func(c *Config) *bool { return &c.PreserveSystem }, pipeline.Setting{
			Name: "preserveSystem", Label: "System prompt and tool definitions stay verbatim",
			Reserved: "They always stay as the client sent them; no level touches them.",
		}),
		pipeline.CountField(func(c *Config) *int { return &c.DeepestLevel }, 0, 3, pipeline.Setting{
			Name: "deepestLevel", Kind: pipeline.Choice, Label: "Deepest level", Hint: "A deeper level shortens old turns more. Off turns compression off.",
			Options: []pipeline.Option{{Value: "0", Label: "Off"}, {Value: "1", Label: "L1"}, {Value: "2", Label: "L2"}, {Value: "3", Label: "L3"}},
		}),
	}
}

func summaries() pipeline.Setting {
	return pipeline.Field(func(c *Config) *LLMCompression { return &c.LLMCompression }, checkLLM, pipeline.Setting{
		Name: "llmCompression", Kind: pipeline.Toggle, Label: "Summaries by a model",
		Hint: "On: a model writes the summaries. Off: first sentences and outlines, without a model. Turning it off deletes the settings below.",
		Members: []pipeline.Setting{
			{
				Name: "model", Kind: pipeline.Word, Label: "Model", First: SameModel,
				Hint: "A model of the conversation’s provider. Enter same to use the conversation’s own model.",
			},
			{Name: "prompt", Kind: pipeline.Paragraph, Label: "Own prompt", Hint: "Instructions for the model, at most 20,000 bytes. Leave it empty to use the built-in ones."},
			optional("maxTokens", "Maximum answer length", "tokens", "100", "A higher value allows longer summaries. Empty: the summary’s own limit."),
			{Name: "timeout", IsRare: true, Kind: pipeline.Word, Label: "Timeout", Hint: "Maximum wait for a summary, such as 30s, up to 10m. Empty: 30s."},
			optional("reserveTokens", "Write the summary early", "tokens left", "1000", "A summary is written as soon as fewer tokens are left in the window. Empty: only after each compaction."),
			optional("keepRecentTokens", "Newest tokens left out", "tokens", "1000", "Empty: as many as preserveTokens."),
		},
	})
}

// optional returns the setting of a number in llmCompression that may be left out.
func optional(name, label, unit, step, hint string) pipeline.Setting {
	s := pipeline.Setting{Name: name, Kind: pipeline.Number, Label: label, Unit: unit, Step: step, Hint: hint, IsOptional: true, IsRare: true, Low: "0"}
	for _, count := range llmCounts() {
		if count.name == name {
			s.High = strconv.Itoa(count.highest)
		}
	}
	return s
}

func details() []pipeline.Setting {
	return []pipeline.Setting{
		pipeline.ShareField(func(c *Config) *float64 { return &c.IdleUtilization }, 0.10, 0.95, pipeline.Setting{
			Name: "idleUtilization", IsRare: true, Label: "Plan ahead above", Hint: "Share of the window. The compaction is made once the provider’s cache has expired. A lower value plans earlier.",
		}),
		pipeline.Field(func(c *Config) *[]int { return &c.KeepLastLadder }, checkLadder, pipeline.Setting{
			Name: "keepLastLadder", IsRare: true, Kind: pipeline.Numbers, Label: "Steps for fewer preserved turns",
			Hint: "Falling numbers from 100 to 1, tried in turn if a compaction frees too little.",
		}),
		pipeline.CountField(func(c *Config) *int { return &c.BlockTokens }, 500, 100_000, pipeline.Setting{
			Name: "blockTokens", IsRare: true, Label: "Maximum L3 text per thread", Unit: "tokens", Step: "100", Hint: "A higher value keeps more lines about the oldest turns.",
		}),
		pipeline.ChoiceField(func(c *Config) *string { return &c.Repeats }, pipeline.Setting{
			Name: "repeats", Label: "Repeated results",
			Reserved: "A tool result that repeats an earlier one goes out whole.",
			Options:  []pipeline.Option{{Value: "keep", Label: "Keep"}, {Value: "point", Label: "Point"}},
		}),
		pipeline.ToggleField(func(c *Config) *bool { return &c.ObservationMasking }, pipeline.Setting{
			Name: "observationMasking", IsRare: true, Label: "Placeholder for tool results at L1", Hint: "On: a placeholder replaces the result. Off: its first 200 characters stay.",
		}),
		pipeline.ToggleField(func(c *Config) *bool { return &c.ArchiveToBlob }, pipeline.Setting{
			Name: "archiveToBlob", Label: "Keep the originals", Hint: "Off also stops new compression, because shortened turns need their originals.",
		}),
		pipeline.Field(func(c *Config) *Window { return &c.ContextWindow }, checkWindow, pipeline.Setting{
			Name: "contextWindow", Kind: pipeline.TokenWindow, Label: "Context window", Unit: "tokens",
			Hint: "Maximum prompt size: auto, or 1,000 to 100,000,000. If the model’s own window is smaller, that applies, with room for the answer.",
		}),
		pipeline.SizeField(func(c *Config) *int { return &c.MaxBytes }, 100_000, 1_000_000_000, pipeline.Setting{
			Name: "maxBytes", IsRare: true, Label: "Maximum prompt size", Unit: "bytes", Step: "1000000",
			Hint: "In larger prompts placeholders replace media, the oldest first. 0 means no limit; otherwise 100,000 or more.",
		}),
		pipeline.CountField(func(c *Config) *int { return &c.WarnAfterEpochs }, 0, 1000, pipeline.Setting{
			Name: "warnAfterEpochs", IsRare: true, Label: "Warn about a thread after", Unit: "compactions", Step: "1", Hint: "A higher value warns later. 0 means never.",
		}),
	}
}

func checkLadder(ladder []int) string {
	const allowed = "allowed are 1 to 20 falling numbers from 100 to 1"
	if len(ladder) == 0 || len(ladder) > 20 {
		return fmt.Sprintf("%d numbers are out of range; %s", len(ladder), allowed)
	}
	for i, turns := range ladder {
		if turns < 1 || turns > 100 || i > 0 && turns >= ladder[i-1] {
			return fmt.Sprintf("%d at place %d is out of order or range; %s", turns, i+1, allowed)
		}
	}
	return ""
}
