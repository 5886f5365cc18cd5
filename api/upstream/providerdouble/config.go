package providerdouble

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"
)

// The formats of a double, with the product's names.
const (
	Anthropic       = "anthropic"
	OpenAIChat      = "openai-chat"
	OpenAIResponses = "openai-responses"
	Gemini          = "gemini" // bodies with the members model and stream

	GeminiInteractions = "gemini-interactions"
)

// MaxBody is the size of the largest accepted request body in bytes, unless Config.MaxBody is set; a longer
// one is answered with 413.
const MaxBody = 32 << 20

// Config configures the provider that a double simulates. The zero value is a provider that accepts any key,
// knows the real models and counts tokens by length.
type Config struct {
	// Window is the context window of every model in tokens; 0 means each model's own.
	Window int

	// LateOverflow lets a stream of Responses with a prompt over the limit begin with 200 and then fail.
	LateOverflow bool

	// Models adds models or replaces known ones, by id.
	Models map[string]Model

	// MaxBody is the largest request body in bytes; 0 means the constant MaxBody.
	MaxBody int

	// Count counts the o200k tokens of a text; nil estimates four bytes a token. It must be safe for
	// concurrent use.
	Count func(string) int

	// TokensPerO200k is the provider's number of tokens for one o200k token; 0 means 1. Reported figures are
	// rounded up.
	TokensPerO200k float64

	// Key is the only accepted provider key; "" accepts every key that does not look like one of a Palimpsest
	// workspace.
	Key string

	// Now is the clock of the prompt cache; nil means time.Now.
	Now func() time.Time

	// Sleep waits between chunks and before slow answers; nil waits in real time.
	Sleep func(context.Context, time.Duration) error

	// Slow is the delay of slow answers; 0 means two seconds.
	Slow time.Duration

	// Script writes the answers; nil means Echo.
	Script Script

	// Secret signs thinking; doubles with the same one accept each other's.
	Secret []byte

	// BindThinking requires that thinking of models that bind it to its prefix keeps the same prefix.
	BindThinking bool

	// AllowUnknown accepts members and block types that the providers' documentation lacks, as a newer
	// version of them would.
	AllowUnknown bool

	// KeepBodies is how many of the newest request bodies are kept; 0 means all.
	KeepBodies int
}

func (c Config) withDefaults() Config {
	if c.Count == nil {
		c.Count = func(text string) int { return (len(text) + 3) / 4 }
	}
	if c.MaxBody == 0 {
		c.MaxBody = MaxBody
	}
	if c.TokensPerO200k == 0 {
		c.TokensPerO200k = 1
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Slow == 0 {
		c.Slow = 2 * time.Second
	}
	if c.Script == nil {
		c.Script = Echo
	}
	if len(c.Secret) == 0 {
		c.Secret = []byte("providertest")
	}
	return c
}

// reported converts o200k tokens to the provider's tokens.
func (c Config) reported(tokens int) int {
	return int(math.Ceil(float64(tokens)*c.TokensPerO200k - 1e-9))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Model describes a model to a double.
type Model struct {
	Window    int // context window in tokens; for OpenAI the largest input
	MaxOutput int // largest max_tokens
	MinCache  int // length of the shortest cached prompt in tokens

	// CacheLife is how long an automatic cache keeps a prompt; 0 means ten minutes. PaysWrites says that
	// writes to the cache are reported and charged for.
	CacheLife  time.Duration
	PaysWrites bool

	Thinking ThinkingRule

	// NoPrefill refuses a conversation that ends with an assistant message.
	NoPrefill bool

	// MidSystem accepts role "system" inside messages.
	MidSystem bool

	// BetweenTools accepts thinking of type between_tools.
	BetweenTools bool

	// DropsReasoning leaves out reasoning whose prefix has changed.
	DropsReasoning bool

	// NoDisabled and NoEnabled refuse this type of thinking.
	NoDisabled, NoEnabled bool

	// StrictWindow refuses a prompt without enough room for max_tokens.
	StrictWindow bool
}

// ThinkingRule is a model's rule for returned thinking.
type ThinkingRule int

// The rules for thinking, oldest models first.
const (
	// ThinkingFirst: with thinking enabled, the running tool loop must start with it.
	ThinkingFirst ThinkingRule = iota
	// ThinkingWhole: thinking inside the running tool loop must be complete.
	ThinkingWhole
	// ThinkingBound: thinking is bound to everything before it.
	ThinkingBound
)

// unknownModel describes every model that the table does not name.
func unknownModel() Model {
	return Model{Window: 128_000, MaxOutput: 128_000, MinCache: 1024, Thinking: ThinkingWhole, NoPrefill: true, MidSystem: true}
}

// model returns the description of a model: Config.Models first, then the real ones by the longest prefix of
// their id. found is false for a model that neither names.
func (c Config) model(id string) (Model, bool) {
	known, found := c.Models[id]
	if !found {
		known, found = realModel(id)
	}
	if c.Window > 0 {
		known.Window = c.Window
	}
	return known, found
}

func realModel(id string) (Model, bool) {
	id = strings.TrimSuffix(strings.TrimPrefix(id, "anthropic/"), "[1m]")
	best, found := "", unknownModel()
	for _, entry := range realModels() {
		if strings.HasPrefix(id, entry.prefix) && len(entry.prefix) > len(best) {
			best, found = entry.prefix, entry.model
		}
	}
	return found, best != ""
}

type modelEntry struct {
	prefix string
	model  Model
}

func realModels() []modelEntry {
	return slices.Concat(anthropicModels(), openaiModels(), geminiModels())
}

func geminiModels() []modelEntry {
	model := Model{Window: 1_048_576, MaxOutput: 65_536, MinCache: 2048, CacheLife: time.Hour}
	return []modelEntry{{"gemini-3-pro", model}, {"gemini-3-flash", model}, {"gemini-3.", model}, {"gemini-2.5-pro", model}, {"gemini-2.5-flash", model}}
}

func anthropicModels() []modelEntry {
	const million = 1_000_000
	bound := func(minCache int) Model {
		return Model{Window: million, MaxOutput: 128_000, MinCache: minCache, Thinking: ThinkingBound, NoPrefill: true, MidSystem: true, NoDisabled: true}
	}
	haiku55 := bound(1024)
	haiku55.NoDisabled = false
	sonnet55 := bound(512)
	sonnet55.BetweenTools = true
	whole := func(minCache int) Model {
		return Model{Window: million, MaxOutput: 128_000, MinCache: minCache, Thinking: ThinkingWhole, NoPrefill: true, MidSystem: true}
	}
	before48 := func(minCache int, noEnabled bool) Model {
		return Model{Window: million, MaxOutput: 128_000, MinCache: minCache, Thinking: ThinkingWhole, NoPrefill: true, NoEnabled: noEnabled}
	}
	opus48 := whole(1024)
	opus48.NoEnabled = true
	fable5 := whole(512)
	fable5.NoDisabled = true
	first := func(minCache, maxOutput int, strict bool) Model {
		return Model{Window: 200_000, MaxOutput: maxOutput, MinCache: minCache, Thinking: ThinkingFirst, StrictWindow: strict}
	}
	return []modelEntry{
		{"claude-fable-5-1", bound(512)},
		{"claude-fable-5-2", bound(512)},
		{"claude-mythos-5-1", bound(512)},
		{"claude-mythos-5-2", bound(512)},
		{"claude-opus-5-5", bound(512)},
		{"claude-sonnet-5-5", sonnet55},
		{"claude-haiku-5-5", haiku55},
		{"claude-fable-5", fable5},
		{"claude-mythos-5", fable5},
		{"claude-opus-5", whole(512)},
		{"claude-sonnet-5", whole(1024)},
		{"claude-opus-4-8", opus48},
		{"claude-opus-4-7", before48(2048, true)},
		{"claude-opus-4-6", before48(4096, false)},
		{"claude-sonnet-4-6", before48(1024, false)},
		{"claude-opus-4-5", Model{Window: 200_000, MaxOutput: 64_000, MinCache: 4096, Thinking: ThinkingWhole}},
		{"claude-sonnet-4-5", first(1024, 64_000, false)},
		{"claude-haiku-4-5", first(4096, 64_000, false)},
		{"claude-opus-4-1", first(1024, 32_000, true)},
		{"claude-opus-4", first(1024, 32_000, true)},
		{"claude-sonnet-4", first(1024, 64_000, true)},
		{"claude-3-7-sonnet", first(1024, 64_000, true)},
		{"claude-3-5-haiku", first(2048, 8192, true)},
		{"claude-3-5-sonnet", first(1024, 8192, true)},
		{"claude-3", first(2048, 4096, true)},
	}
}

func openaiModels() []modelEntry {
	openai := func(window, maxOutput int) Model {
		return Model{Window: window, MaxOutput: maxOutput, MinCache: 1024}
	}
	half := openai(922_000, 128_000)
	half.CacheLife, half.PaysWrites = 30*time.Minute, true
	newest := half
	newest.DropsReasoning = true
	day := openai(922_000, 128_000)
	day.CacheLife = 24 * time.Hour
	return []modelEntry{
		{"gpt-6.2", newest},
		{"gpt-6.1", newest},
		{"gpt-6", newest},
		{"gpt-5.6", half},
		{"gpt-5.5", day},
		{"gpt-5.4", openai(922_000, 128_000)},
		{"gpt-5.4-mini", openai(272_000, 128_000)},
		{"gpt-5.4-nano", openai(272_000, 128_000)},
		{"gpt-5", openai(272_000, 128_000)},
		{"gpt-4.1", openai(1_047_576, 32_768)},
		{"gpt-4o", openai(128_000, 16_384)},
		{"o3", openai(200_000, 100_000)},
		{"o4-mini", openai(200_000, 100_000)},
	}
}
