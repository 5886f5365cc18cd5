package providerdouble

import (
	"context"
	"math"
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
