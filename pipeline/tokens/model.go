package tokens

import (
	"cmp"
	"time"
)

// The makers whose models have rules of their own.
const (
	providerAnthropic = "anthropic"
	providerOpenAI    = "openai"
)

// Model is what is known of a model.
type Model struct {
	Name     string `json:"name"`     // without vendor, date and suffix; an unknown model's as it was asked for
	Family   string `json:"family"`   // "claude-opus", "gpt-5.6": few values; empty if the model is unknown
	Provider string `json:"provider"` // in the catalog its maker, for a request the provider that is asked; empty if unknown
	Known    bool   `json:"-"`        // is in the catalog, or has a window of its own

	Window     int `json:"window"`               // tokens of prompt and answer together
	LongWindow int `json:"longWindow,omitempty"` // the window that can be asked for in its place; 0 if none
	MaxInput   int `json:"maxInput,omitempty"`   // tokens of the prompt, where that is less than Window; 0: as many
	MaxOutput  int `json:"maxOutput"`            // tokens of the answer; 0: not known

	Price Price `json:"price,omitzero"` // zero where it is not known

	// TokensPerO200k is how many tokens of the model one o200k token comes to,
	// before anything has been learned of it.
	TokensPerO200k float64 `json:"tokensPerO200k,omitempty"`

	// BoundThinking says that thinking is bound to all that precedes it: after an
	// edit before it the provider must be told to drop it.
	BoundThinking bool `json:"boundThinking,omitempty"`

	// ThinksUnasked says that the model thinks where a request does not say
	// whether it should.
	ThinksUnasked bool `json:"thinksUnasked,omitempty"`

	// Moving says that the name stands for another model from time to time: "gemini-flash-latest".
	Moving bool `json:"moving,omitempty"`

	Cache Cache `json:"cache,omitzero"`

	Rates
}

// Rates are how many times the price tokens cost in a tier of service or speed, and if they are
// processed in a region; "*" is every region.
type Rates struct {
	Tiers   map[string]float64 `json:"tiers,omitempty"`
	Regions map[string]float64 `json:"regions,omitempty"`
}

// Cache is how a provider keeps the prompts of a model.
type Cache struct {
	Min   int    `json:"min,omitempty"`   // tokens of the shortest prefix that it keeps; 0: not known
	Lives []Life `json:"lives,omitempty"` // for how long it keeps one unused: unasked, and what can be asked for
}

// Life is for how long a prompt is kept, as "5m".
type Life struct{ time.Duration }

// UnmarshalText reads a duration.
func (l *Life) UnmarshalText(text []byte) (err error) {
	l.Duration, err = time.ParseDuration(string(text))
	return err
}

// MarshalText writes a duration.
func (l Life) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Usual returns for how long a prompt is kept that asks for nothing; otherwise if that is not known.
func (c Cache) Usual(otherwise time.Duration) time.Duration {
	if len(c.Lives) == 0 {
		return otherwise
	}
	return c.Lives[0].Duration
}

// Longest returns the longest time that a prompt can be kept; otherwise if that is not known.
func (c Cache) Longest(otherwise time.Duration) time.Duration {
	longest := time.Duration(0)
	for _, life := range c.Lives {
		longest = max(longest, life.Duration)
	}
	return cmp.Or(longest, otherwise)
}

// The window that is shown for a model nobody knows.
const unknownWindow = 128_000

// What one o200k token comes to in the models' own tokens. For Claude, measured
// over real sessions; most of OpenAI's models use o200k themselves.
const (
	tokensPerO200kClaude = 1.33
	tokensPerO200kOther  = 1
)

// InputLimit returns how many tokens a prompt may have if reserved tokens are
// wanted for the answer: the provider's limit on input where it has one, else
// what the reserve leaves of the window, but at least half of it. It is 0 for an
// unknown model: nobody knows when its prompts are too long.
func (m Model) InputLimit(reserved int) int {
	if !m.Known {
		return 0
	}
	if m.MaxInput > 0 && m.MaxInput < m.Window {
		return m.MaxInput
	}
	if m.MaxOutput > 0 {
		reserved = min(reserved, m.MaxOutput)
	}
	return max(m.Window-max(0, reserved), m.Window/2)
}

// WithWindow returns the model with a context window of n tokens, which makes it
// known.
func (m Model) WithWindow(n int) Model {
	m.Window, m.MaxInput, m.Known = n, 0, true
	return m
}

// WithLongWindow returns the model with the long window that was asked for, by
// the suffix [1m] or a beta header; a model without one stays as it is.
func (m Model) WithLongWindow() Model {
	if m.LongWindow > m.Window {
		return m.WithWindow(m.LongWindow)
	}
	return m
}

// WithPrice returns the model with a price in place of the one that is listed. What the price leaves
// out of caches, and of long prompts, follows from the listed one. A price of 0 is free.
func (m Model) WithPrice(price Price) Model {
	if listed := m.Price; listed.Input > 0 {
		of := listed.times(price.Input / listed.Input)
		price.CacheRead, price.CacheWrite = cmp.Or(price.CacheRead, of.CacheRead), cmp.Or(price.CacheWrite, of.CacheWrite)
		price.CacheWrite1h = cmp.Or(price.CacheWrite1h, of.CacheWrite1h)
		price.LongAbove, price.LongInput, price.LongOutput = listed.LongAbove, listed.LongInput, listed.LongOutput
	}
	m.Price = price.complete(m.Provider)
	m.Price.Free = price.Input == 0 && price.Output == 0
	return m
}

// complete returns a model of the catalog with everything that follows from the rest.
func (m Model) complete() Model {
	m.Known = true
	m.Price = m.Price.complete(m.Provider)
	if m.Family == "" {
		m.Family = m.Name
	}
	if m.TokensPerO200k == 0 {
		m.TokensPerO200k = tokensPerO200k(m.Provider)
	}
	return m
}

func tokensPerO200k(provider string) float64 {
	if provider == providerAnthropic {
		return tokensPerO200kClaude
	}
	return tokensPerO200kOther
}
