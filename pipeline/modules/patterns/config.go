package patterns

import "palimpsest/pipeline"

// Config holds the settings of the module patterns, which puts a team's rules into a prompt.
type Config struct {
	// MaxInjected is the maximum of patterns in a lane.
	MaxInjected int `json:"maxInjected" yaml:"maxInjected"`

	// MinSuccessRate has no effect.
	MinSuccessRate float64 `json:"minSuccessRate" yaml:"minSuccessRate"`

	// Review has no effect.
	Review string `json:"review" yaml:"review"`

	// Placement is where patterns are put: "turn" or "system".
	Placement string `json:"placement" yaml:"placement"`
}

// DefaultConfig returns the settings of a workspace without its own.
func DefaultConfig() Config {
	return Config{MaxInjected: 5, MinSuccessRate: 0.6, Review: "required", Placement: pipeline.PlacementTurn}
}

// ModuleName implements pipeline.Settings.
func (Config) ModuleName() string { return Name }

// Description returns the module's description.
func Description() pipeline.Description {
	return pipeline.Description{
		Name: Name, Title: "Team rules", Header: "patterns", IsStandard: true, Docs: "memory.md#patterns",
		Does:     "Adds the team’s rules to relevant prompts, once per session.",
		Figure:   pipeline.Figure{Before: "added to ", Noun: "prompt"},
		Defaults: func() pipeline.Settings { return new(DefaultConfig()) },
		Cards: []pipeline.Card{
			{Title: "Added rules", Sub: "rules that your team wrote", Settings: []pipeline.Setting{
				pipeline.CountField(func(c *Config) *int { return &c.MaxInjected }, 0, 100, pipeline.Setting{
					Name: "maxInjected", Label: "Maximum rules per thread", Unit: "rules", Step: "1", Hint: "A higher value adds more rules and makes prompts longer.",
				}),
				pipeline.ShareField(func(c *Config) *float64 { return &c.MinSuccessRate }, 0, 1, pipeline.Setting{
					Name: "minSuccessRate", Label: "Minimum success rate", Reserved: notMined,
				}),
				pipeline.ChoiceField(func(c *Config) *string { return &c.Review }, pipeline.Setting{
					Name: "review", Label: "Review", Reserved: notMined,
					Options: []pipeline.Option{{Value: "required", Label: "Required"}, {Value: "auto", Label: "Auto"}},
				}),
				pipeline.PlacementField(func(c *Config) *string { return &c.Placement }),
			}},
		},
	}
}

// notMined explains why settings for rules found in sessions have no effect.
const notMined = "Rules are written by people; none are found in sessions."

// configOf returns the module's settings for an exchange.
func configOf(exchange *pipeline.View) Config {
	return pipeline.SettingsOf[Config](exchange.Config)
}
