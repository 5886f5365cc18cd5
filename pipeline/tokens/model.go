package tokens

import (
	"cmp"
	"time"
	"unicode"
	"unicode/utf8"
)

// The makers whose models have special rules.
const (
	providerAnthropic = "anthropic"
	providerOpenAI    = "openai"
)

// Model holds the known properties of a model.
type Model struct {
	Name     string `json:"name"`     // without vendor, date and suffix; the requested name for an unknown model
	Family   string `json:"family"`   // "claude-opus", "gpt-5.6": few values; "" if the model is unknown
	Provider string `json:"provider"` // in the catalog its maker, for a request the provider that is asked; "" if unknown
	Known    bool   `json:"-"`        // is in the catalog, or has an overridden window

	Window     int `json:"window"`               // tokens of prompt and answer together
	LongWindow int `json:"longWindow,omitempty"` // optional window on request; 0 if absent
	MaxInput   int `json:"maxInput,omitempty"`   // tokens of the prompt if less than Window; 0 if the same
	MaxOutput  int `json:"maxOutput"`            // tokens of the answer; 0 if unknown

	Price Price `json:"price,omitzero"` // zero if unknown

	// TokensPerO200k is the model's number of tokens per o200k token, before calibration.
	TokensPerO200k float64 `json:"tokensPerO200k,omitempty"`

	// BoundThinking means that thinking is bound to all content before it, so that after an edit there the
	// provider must be told to drop the thinking.
	BoundThinking bool `json:"boundThinking,omitempty"`

	// ThinksUnasked means that the model thinks unless a request turns it off.
	ThinksUnasked bool `json:"thinksUnasked,omitempty"`

	// Moving means that the name refers to different models over time: "gemini-flash-latest".
	Moving bool `json:"moving,omitempty"`

	Cache Cache `json:"cache,omitzero"`

	Rates
}

// Rates are factors on the price, by tier of service or speed, and by processing region; "*" is every region.
type Rates struct {
	Tiers   map[string]float64 `json:"tiers,omitempty"`
	Regions map[string]float64 `json:"regions,omitempty"`
}

// Cache describes a provider's prompt cache for a model.
type Cache struct {
	Min   int    `json:"min,omitempty"`   // tokens of the shortest cached prefix; 0 if unknown
	Lives []Life `json:"lives,omitempty"` // lifetimes of an unused prefix: the default, and those on request
}

// Life is the lifetime of a cached prompt, as "5m".
type Life struct{ time.Duration }

// UnmarshalText reads a duration.
func (l *Life) UnmarshalText(text []byte) (err error) {
	l.Duration, err = time.ParseDuration(string(text))
	return err
}

// MarshalText writes a duration.
func (l Life) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Usual returns the lifetime of a prompt without a requested one; otherwise if unknown.
func (c Cache) Usual(otherwise time.Duration) time.Duration {
	if len(c.Lives) == 0 {
		return otherwise
	}
	return c.Lives[0].Duration
}

// Longest returns the longest available lifetime of a prompt; otherwise if unknown.
func (c Cache) Longest(otherwise time.Duration) time.Duration {
	longest := time.Duration(0)
	for _, life := range c.Lives {
		longest = max(longest, life.Duration)
	}
	return cmp.Or(longest, otherwise)
}

// The displayed window of an unknown model.
const unknownWindow = 128_000

// The models' own tokens per o200k token. For Claude, measured over real sessions; most of OpenAI's models
// use o200k themselves.
const (
	tokensPerO200kClaude = 1.33
	tokensPerO200kOther  = 1
)

// InputLimit returns how many tokens a prompt may have if reserved tokens are needed for the answer: the
// provider's limit on input if it has one, otherwise the window minus the reserve, but at least half of the
// window. It is 0 for an unknown model, because its limit is unknown.
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

// WithWindow returns the model with a context window of n tokens, which makes it known.
func (m Model) WithWindow(n int) Model {
	m.Window, m.MaxInput, m.Known = n, 0, true
	return m
}

// WithLongWindow returns the model with its long window, as requested by the suffix [1m] or a beta header. A
// model without one is returned unchanged.
func (m Model) WithLongWindow() Model {
	if m.LongWindow > m.Window {
		return m.WithWindow(m.LongWindow)
	}
	return m
}

// WithPrice returns the model with a price that replaces the listed one. Missing prices of caches and of long
// prompts are derived from the listed one. A price of 0 means free.
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

// complete returns a catalog model with all derived values.
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

// class is a character's class in the tokenizer's pattern. The pattern has two kinds of letters: those
// allowed in a word's upper-case head and those in its lower-case tail. Many scripts and all marks are both.
type class uint8

const (
	upper   class = 1 << iota // Lu Lt Lm Lo M
	lower                     // Ll Lm Lo M
	letter                    // L
	mark                      // M
	number                    // N
	space                     // White_Space
	newline                   // \r \n
)

// classified is the first character whose class is looked up in Unicode's own tables. All scripts in daily
// use and all emoji come before it.
const classified = 0x20000

// classes holds the class of every character before classified.
type classes [classified]class

func newClasses() *classes {
	table := new(classes)
	for _, kind := range kinds() {
		for _, r := range kind.table.R16 {
			table.add(rune(r.Lo), rune(r.Hi), rune(r.Stride), kind.class)
		}
		for _, r := range kind.table.R32 {
			table.add(rune(r.Lo), rune(r.Hi), rune(r.Stride), kind.class) //nolint:gosec // characters have 21 bits
		}
	}
	return table
}

type kind struct {
	table *unicode.RangeTable
	class class
}

func kinds() []kind {
	return []kind{
		{unicode.Lu, upper | letter},
		{unicode.Lt, upper | letter},
		{unicode.Lm, upper | lower | letter},
		{unicode.Lo, upper | lower | letter},
		{unicode.Ll, lower | letter},
		{unicode.M, upper | lower | mark},
		{unicode.N, number},
		{unicode.White_Space, space},
		{&unicode.RangeTable{R16: []unicode.Range16{{Lo: '\n', Hi: '\r', Stride: '\r' - '\n'}}}, newline},
	}
}

func (c *classes) add(from, to, stride rune, set class) {
	for r := from; r <= to && r < classified; r += stride {
		c[r] |= set
	}
}

// at returns the class of the character at text[i] and its length in bytes.
func (c *classes) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return c[b], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	if r < classified {
		return c[r], size
	}
	return classOf(r), size
}

// classOf returns the class of a character outside our table.
func classOf(r rune) class {
	var found class
	for _, kind := range kinds() {
		if unicode.Is(kind.table, r) {
			found |= kind.class
		}
	}
	return found
}
