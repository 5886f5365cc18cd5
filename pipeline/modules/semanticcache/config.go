package semanticcache

import "palimpsest/pipeline"

// Config holds the settings of the module semantic-cache, which answers a single question with the
// answer to the same one.
type Config struct {
	// Similarity has no effect.
	Similarity float64 `json:"similarity" yaml:"similarity"`

	// TTLSeconds is the maximum age of an answer.
	TTLSeconds int `json:"ttlSeconds" yaml:"ttlSeconds"`

	// EmbeddingModel has no effect.
	EmbeddingModel string `json:"embeddingModel" yaml:"embeddingModel"`

	// Scope is the group that shares answers: one of pipeline.Scopes.
	Scope string `json:"scope" yaml:"scope"`
}

// DefaultConfig returns the settings of a workspace without its own.
func DefaultConfig() Config {
	return Config{Similarity: 0.92, TTLSeconds: 3600, EmbeddingModel: "text-embedding-3-small", Scope: pipeline.ScopePerson}
}

// onlySame explains why settings for questions in other words have no effect.
const onlySame = "Only the very same question is answered; questions in other words go to the provider."

// ModuleName implements pipeline.Settings.
func (Config) ModuleName() string { return Name }

// Description returns the module's description.
func Description() pipeline.Description {
	return pipeline.Description{
		Name: Name, Title: "Answer cache", Docs: "answer-cache.md",
		Does:     "Answers a repeated single question with the earlier answer.",
		Defaults: func() pipeline.Settings { return new(DefaultConfig()) },
		Cards: []pipeline.Card{
			{Title: "Repeated answers", Sub: "looked up with the final prompt, whatever the order of modules", Settings: []pipeline.Setting{
				pipeline.ShareField(func(c *Config) *float64 { return &c.Similarity }, 0, 1, pipeline.Setting{
					Name: "similarity", Label: "Minimum similarity", Reserved: onlySame,
				}),
				pipeline.CountField(func(c *Config) *int { return &c.TTLSeconds }, 1, 31_536_000, pipeline.Setting{
					Name: "ttlSeconds", Label: "Maximum age", Unit: "seconds", Step: "60", Hint: "A higher value repeats older answers.",
				}),
				pipeline.ScopeField(func(c *Config) *string { return &c.Scope }, "Who shares answers",
					"Person: requests of the API key’s owner, of one end user. Workspace: everyone, so that an answer to one end user can be given to another."),
				pipeline.TextField(func(c *Config) *string { return &c.EmbeddingModel }, pipeline.Setting{
					Name: "embeddingModel", Label: "Embedding model", Reserved: onlySame,
				}),
			}},
		},
	}
}
