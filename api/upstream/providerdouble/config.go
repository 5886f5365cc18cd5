package providerdouble

import (
	"context"
	"math"
	"time"
)

// The formats that a double speaks, named as the product names them.
const (
	Anthropic       = "anthropic"
	OpenAIChat      = "openai-chat"
	OpenAIResponses = "openai-responses"
)

// MaxBody is the largest request body in bytes that is read, unless Config.MaxBody
// says otherwise; a longer one is answered with 413.
const MaxBody = 32 << 20

// Config says which provider a double pretends to be. The zero value is a
// provider that takes any key, knows the real models and counts tokens by length.
type Config struct {
	// Window is the context window of every model in tokens; 0 leaves each
	// model its own.
	Window int

	// LateOverflow has a stream of Responses whose prompt is too long begin with 200 and
	// fail then.
	LateOverflow bool

	// Models adds models or replaces what is known of one, by id.
	Models map[string]Model

	// MaxBody is the largest request body in bytes; 0 is the constant.
	MaxBody int

	// Count counts the o200k tokens of a text; nil estimates four bytes a token.
	// It is called from several goroutines at once.
	Count func(string) int

	// TokensPerO200k is what the provider reports for one o200k token; 0 is 1.
	// Reported figures are rounded up.
	TokensPerO200k float64

	// Key is the only provider key that is let in; empty lets in every key that
	// does not look like one of a Palimpsest workspace.
	Key string

	// Now is the clock of the prompt cache; nil is time.Now.
	Now func() time.Time

	// Sleep waits between chunks and before slow answers; nil waits in real time.
	Sleep func(context.Context, time.Duration) error

	// Slow is how long an answer waits that was asked to be slow; 0 is two seconds.
	Slow time.Duration

	// Script writes the answers; nil is Echo.
	Script Script

	// Secret signs thinking; two doubles with the same one accept each other's.
	Secret []byte

	// BindThinking enforces that thinking of the models that bind it to its
	// prefix still stands behind the same prefix.
	BindThinking bool

	// AllowUnknown accepts members and block types that are not in the
	// providers' documentation, as a newer version of them would.
	AllowUnknown bool

	// KeepBodies is how many of the newest request bodies are kept; 0 keeps all.
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

// reported turns o200k tokens into what the provider reports.
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
