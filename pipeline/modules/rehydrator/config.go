package rehydrator

import (
	"fmt"
	"strings"

	"palimpsest/pipeline"
)

// Config holds the settings of the module rehydrator, which restores turns that someone refers to.
type Config struct {
	TriggerPhrases      []string `json:"triggerPhrases"      yaml:"triggerPhrases"`
	MaxRehydrated       int      `json:"maxRehydrated"       yaml:"maxRehydrated"`
	SearchDepthDays     int      `json:"searchDepthDays"     yaml:"searchDepthDays"`
	SimilarityThreshold float64  `json:"similarityThreshold" yaml:"similarityThreshold"`
	MaxTokens           int      `json:"maxTokens"           yaml:"maxTokens"`
	Scope               string   `json:"scope"               yaml:"scope"`
	Placement           string   `json:"placement"           yaml:"placement"`

	// EmbeddingModel is a model of the workspace's own provider that embeds the archive for search
	// in addition to text search; "" disables it. Only the workspace's setting counts: those of a
	// key or a request are ignored.
	EmbeddingModel string `json:"embeddingModel" yaml:"embeddingModel"`
}

// DefaultConfig returns the settings of a workspace without its own.
func DefaultConfig() Config {
	return Config{
		TriggerPhrases:      []string{},
		MaxRehydrated:       5,
		SearchDepthDays:     90,
		SimilarityThreshold: 0.7,
		MaxTokens:           1_000,
		Scope:               pipeline.ScopeSession,
		Placement:           pipeline.PlacementTurn,
	}
}

// ModuleName implements pipeline.Settings.
func (Config) ModuleName() string { return Name }

// Description returns the module's description.
func Description() pipeline.Description {
	return pipeline.Description{
		Name: Name, Title: "Recall of earlier turns", Header: "rehydrated", IsStandard: true,
		Docs:     "memory.md#what-comes-back-when-someone-refers-to-it-rehydrator",
		Does:     "Brings earlier turns back when someone refers to them.",
		Figure:   pipeline.Figure{Noun: "recall"},
		Defaults: func() pipeline.Settings { return new(DefaultConfig()) },
		Cards: []pipeline.Card{
			{Title: "Recalled turns", Sub: "when someone refers to earlier turns", Settings: []pipeline.Setting{
				pipeline.Field(func(c *Config) *[]string { return &c.TriggerPhrases }, checkPhrases, pipeline.Setting{
					Name: "triggerPhrases", Kind: pipeline.Lines, Label: "Trigger phrases", Hint: "In addition to the built-in ones. One per line, up to 100.",
				}),
				pipeline.CountField(func(c *Config) *int { return &c.MaxRehydrated }, 0, 100, pipeline.Setting{
					Name: "maxRehydrated", Label: "Maximum number", Unit: "turns", Step: "1", Hint: "A higher value brings more turns back. 0 brings none back.",
				}),
				pipeline.CountField(func(c *Config) *int { return &c.MaxTokens }, 0, 100_000, pipeline.Setting{
					Name: "maxTokens", Label: "Maximum length", Unit: "tokens", Step: "500", Hint: "A higher value brings more text back and makes prompts longer.",
				}),
				pipeline.ScopeField(func(c *Config) *string { return &c.Scope }, "Source of recalled turns",
					"Session: only messages of the same session. Person: also other sessions of the API key’s owner. "+
						"Project: everyone’s sessions with the same tag project. Workspace: all sessions, so that one end user’s words can reach another’s prompt."),
				pipeline.CountField(func(c *Config) *int { return &c.SearchDepthDays }, 1, 3650, pipeline.Setting{
					Name: "searchDepthDays", IsRare: true, Label: "Search depth", Unit: "days", Step: "1", Hint: "A higher value searches older sessions too.",
				}),
				pipeline.ShareField(func(c *Config) *float64 { return &c.SimilarityThreshold }, 0, 1, pipeline.Setting{
					Name: "similarityThreshold", IsRare: true, Label: "Similarity threshold", Hint: "Less similar turns are not brought back. A higher value recalls fewer turns.",
				}),
				pipeline.PlacementField(func(c *Config) *string { return &c.Placement }),
				pipeline.TextField(func(c *Config) *string { return &c.EmbeddingModel }, pipeline.Setting{
					Name: "embeddingModel", Label: "Embedding model", Hint: "A model of your own provider. The archive is then searched by meaning too. Empty: by text only.",
				}),
			}},
		},
	}
}

func checkPhrases(phrases []string) string {
	if len(phrases) > 100 {
		return fmt.Sprintf("%d phrases are out of range; allowed are 0 to 100", len(phrases))
	}
	for i, phrase := range phrases {
		if strings.TrimSpace(phrase) == "" || len(phrase) > 200 {
			return fmt.Sprintf("phrase %d is empty or longer than 200 bytes", i+1)
		}
	}
	return ""
}

// configOf returns the module's settings for an exchange.
func configOf(exchange *pipeline.View) Config {
	return pipeline.SettingsOf[Config](exchange.Config)
}
