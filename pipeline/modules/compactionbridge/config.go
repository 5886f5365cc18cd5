package compactionbridge

import (
	"fmt"
	"strings"

	"palimpsest/pipeline"
)

// Config holds the settings of the module compaction-bridge.
type Config struct {
	// PreserveLastTurns is how many of the last turns before a client's compaction are restored if
	// the client dropped them.
	PreserveLastTurns int `json:"preserveLastTurns" yaml:"preserveLastTurns"`

	// PreserveActiveFiles restores the content of active files.
	PreserveActiveFiles bool `json:"preserveActiveFiles" yaml:"preserveActiveFiles"`

	// PreserveDirectives restores standing orders that the client's summary lost.
	PreserveDirectives bool `json:"preserveDirectives" yaml:"preserveDirectives"`

	// DetectionThreshold is the minimum score at which an unknown client counts as having compacted
	// itself.
	DetectionThreshold float64 `json:"detectionThreshold" yaml:"detectionThreshold"`

	// BlobPrefix is the prefix of archive objects in a directory or bucket. It is reserved: the
	// operator sets the prefix for all workspaces.
	BlobPrefix string `json:"blobPrefix" yaml:"blobPrefix"`

	// MaxTokens bounds the inserted block, in o200k tokens.
	MaxTokens int `json:"maxTokens" yaml:"maxTokens"`

	// Scope limits the search for a history that a client left behind without naming its session:
	// one of pipeline.Scopes. Beyond ScopeSession the search covers the sessions of the same API
	// key and end user, by the messages that the client kept.
	Scope string `json:"scope" yaml:"scope"`

	// Placement is the place of the block: "turn" or "system".
	Placement string `json:"placement" yaml:"placement"`

	// ClientCompaction decides whether a client's own request for a summary passes to the provider,
	// or is answered without it if a compaction is ready.
	ClientCompaction string `json:"clientCompaction" yaml:"clientCompaction"`
}

// The values of Config.ClientCompaction.
const (
	ClientCompactionPass   = "pass"
	ClientCompactionAnswer = "answer"
)

// DefaultConfig returns the settings of a workspace without its own.
func DefaultConfig() Config {
	return Config{
		PreserveLastTurns:   5,
		PreserveActiveFiles: true,
		PreserveDirectives:  true,
		DetectionThreshold:  0.6,
		BlobPrefix:          "evictions",
		MaxTokens:           6_000,
		Scope:               pipeline.ScopeSession,
		Placement:           pipeline.PlacementTurn,
		ClientCompaction:    ClientCompactionPass,
	}
}

// ModuleName implements pipeline.Settings.
func (Config) ModuleName() string { return Name }

// Description returns the module's description.
func Description() pipeline.Description {
	return pipeline.Description{
		Name: Name, Title: "Restore after client compaction", Header: "bridge", IsStandard: true,
		Docs:     "memory.md#after-the-client-compacted-itself-compaction-bridge",
		Does:     "Restores details that a client’s own summary lost.",
		Defaults: func() pipeline.Settings { return new(DefaultConfig()) },
		Cards: []pipeline.Card{
			{Title: "Restored details", Sub: "after a client compacted itself", Settings: restored()},
			{Title: "When a client asks for its own summary", Sub: "/compact, or at the client's limit", Settings: []pipeline.Setting{
				pipeline.ChoiceField(func(c *Config) *string { return &c.ClientCompaction }, pipeline.Setting{
					Name: "clientCompaction", Label: "Client’s own compaction",
					Hint:    "Answer: if a compaction of the same history is ready, the client gets its summary from it at once, without a model and without cost. Other requests, such as /compact with instructions, go to the provider.",
					Options: []pipeline.Option{{Value: ClientCompactionPass, Label: "Pass to the provider"}, {Value: ClientCompactionAnswer, Label: "Answer if ready"}},
				}),
			}},
			{Title: "Details", Settings: []pipeline.Setting{
				pipeline.ShareField(func(c *Config) *float64 { return &c.DetectionThreshold }, 0, 1, pipeline.Setting{
					Name: "detectionThreshold", IsRare: true, Label: "Detection threshold", Hint: "Score at which an unknown client counts as having compacted itself. A higher value restores less often.",
				}),
				pipeline.Field(func(c *Config) *string { return &c.BlobPrefix }, checkPrefix, pipeline.Setting{
					Name: "blobPrefix", Kind: pipeline.Word, Label: "Prefix of archive objects",
					Reserved: "The prefix is part of PALIMPSEST_BLOB_URL, for the whole installation.",
				}),
			}},
		},
	}
}

// restored are the settings that choose the restored content.
func restored() []pipeline.Setting {
	return []pipeline.Setting{
		pipeline.CountField(func(c *Config) *int { return &c.PreserveLastTurns }, 0, 100, pipeline.Setting{
			Name: "preserveLastTurns", IsRare: true, Label: "Last turns before it", Unit: "turns", Step: "1", Hint: "Turns that the client dropped. A higher value restores more of them.",
		}),
		pipeline.ToggleField(func(c *Config) *bool { return &c.PreserveActiveFiles }, pipeline.Setting{
			Name: "preserveActiveFiles", Label: "Files in use", Hint: "Restores their content too.",
		}),
		pipeline.ToggleField(func(c *Config) *bool { return &c.PreserveDirectives }, pipeline.Setting{
			Name: "preserveDirectives", Label: "Standing orders", Hint: "“Always …” and “never …”, if the client’s summary lost them.",
		}),
		pipeline.CountField(func(c *Config) *int { return &c.MaxTokens }, 0, 100_000, pipeline.Setting{
			Name: "maxTokens", IsRare: true, Label: "Maximum length", Unit: "tokens", Step: "500", Hint: "A higher value restores more and makes prompts longer.",
		}),
		pipeline.ScopeField(func(c *Config) *string { return &c.Scope }, "Source of restored text",
			"Session: only messages of a session that the client names. Wider: clients that name no session also get messages from "+
				"another session of the same API key that has the same messages. It could be someone else’s if several people use the key."),
		pipeline.PlacementField(func(c *Config) *string { return &c.Placement }),
	}
}

func checkPrefix(prefix string) string {
	if len(prefix) > 200 || strings.Contains(prefix, "..") || strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, "\\\x00") {
		return fmt.Sprintf("%q is no prefix; allowed are up to 200 bytes without a leading slash, .. or backslash", prefix)
	}
	return ""
}

// configOf returns the module's settings for an exchange.
func configOf(exchange *pipeline.View) Config {
	return pipeline.SettingsOf[Config](exchange.Config)
}
