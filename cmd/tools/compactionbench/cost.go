package compactionbench

import (
	"math"
	"time"

	"palimpsest/pipeline/tokens"
)

// Prices are what tokens cost as multiples of plain input, and how long a cached
// prefix lives.
type Prices struct {
	Name   string        `json:"name"`
	Read   float64       `json:"read"`  // of the cache
	Write  float64       `json:"write"` // to the cache
	Output float64       `json:"output"`
	TTL    time.Duration `json:"ttl"`

	// Automatic is a provider that caches without being asked, and reports no writes.
	Automatic bool `json:"automatic"`
}

// of returns a model's price with these in relation to its input.
func (p *Prices) of(price tokens.Price) tokens.Price {
	price.CacheRead, price.CacheWrite, price.CacheWrite1h = p.Read*price.Input, p.Write*price.Input, p.Write*price.Input
	return price
}

// The prices that providers ask for, see their pricing pages. Output costs five
// times as much as input at Anthropic; only summaries that a model writes have any.
const output = 5

// Anthropic returns Anthropic's prices with a cache that lives for five minutes.
func Anthropic() Prices {
	return Prices{Name: "anthropic 5m", Read: 0.1, Write: 1.25, Output: output, TTL: 5 * time.Minute}
}

// AnthropicHour returns Anthropic's prices with a cache that lives for an hour.
func AnthropicHour() Prices {
	return Prices{Name: "anthropic 1h", Read: 0.1, Write: 2, Output: output, TTL: time.Hour}
}

// OpenAI returns the prices of providers that cache without being asked to.
func OpenAI() Prices {
	return Prices{Name: "openai", Read: 0.1, Write: 1, Output: output, TTL: 10 * time.Minute, Automatic: true}
}

// Pace says when a client sends its requests.
type Pace struct {
	Name  string        `json:"name"`
	Step  time.Duration `json:"step"`  // from one request to the next
	Every int           `json:"every"` // requests after which there is a pause; 0: never
	Pause time.Duration `json:"pause"`
}

// Warm is a client that never lets the provider's cache go cold.
func Warm() Pace { return Pace{Name: "warm", Step: 20 * time.Second} }

// WithGaps is a client whose user goes away after every 20 requests, for longer
// than any cache lives.
func WithGaps() Pace {
	return Pace{Name: "idle gaps", Step: 20 * time.Second, Every: 20, Pause: 3 * time.Hour}
}

// At returns when a request is sent, counted from 0.
func (p Pace) At(request int) time.Time {
	start := time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
	at := start.Add(time.Duration(request) * p.Step)
	if p.Every > 0 {
		at = at.Add(time.Duration(request/p.Every) * p.Pause)
	}
	return at
}

// Bill is what a session's prompts come to.
type Bill struct {
	Requests int     `json:"requests"`
	TooLong  int     `json:"too_long"` // prompts that the window does not hold
	Busts    int     `json:"busts"`    // prompts that the one before is no prefix of
	Tokens   float64 `json:"tokens"`   // sent, the model's own
	Cost     float64 `json:"cost"`     // in tokens of plain input
	Largest  float64 `json:"largest"`  // prompt, as a share of what one may have

	// Held is how many of the identifiers that the next turn takes up from earlier ones
	// its prompt had.
	Held Share `json:"held"`

	sofar []float64 // Cost after each request of the client's
}

// requested notes that a request of the client's has been charged.
func (b *Bill) requested() { b.sofar = append(b.sofar, b.Cost) }

// worst returns the largest share by which a session costs more than another if it ends
// after any of its requests, in percent.
func (b *Bill) worst(other *Bill) float64 {
	worst := math.Inf(-1)
	for i := range min(len(b.sofar), len(other.sofar)) {
		worst = max(worst, 100*(b.sofar[i]/other.sofar[i]-1))
	}
	return worst
}

// add charges a prompt whose tokens met the cache so, and an answer if it is part
// of the policy's price.
func (b *Bill) add(prices Prices, read, write, output float64) {
	b.Requests++
	b.Tokens += read + write
	b.Cost += prices.Read*read + prices.Write*write + prices.Output*output
}

// measure notes a prompt's share of what it may have.
func (b *Bill) measure(share float64) {
	b.Largest = max(b.Largest, share)
	if share > 1 {
		b.TooLong++
	}
}

// against returns by how many percent a bill is higher than another.
func (b *Bill) against(other Bill) float64 {
	if other.Cost == 0 {
		return 0
	}
	return 100 * (b.Cost/other.Cost - 1)
}
