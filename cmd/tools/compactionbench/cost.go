package compactionbench

import (
	"math"
	"time"

	"palimpsest/pipeline/tokens"
)

// Prices are the costs of tokens as multiples of plain input, and the lifetime of a cached prefix.
type Prices struct {
	Name   string        `json:"name"`
	Read   float64       `json:"read"`  // of the cache
	Write  float64       `json:"write"` // to the cache
	Output float64       `json:"output"`
	TTL    time.Duration `json:"ttl"`

	// Automatic is a provider that caches automatically, and reports no writes.
	Automatic bool `json:"automatic"`
}

// of returns a model's price with these multiples of its input price.
func (p *Prices) of(price tokens.Price) tokens.Price {
	price.CacheRead, price.CacheWrite, price.CacheWrite1h = p.Read*price.Input, p.Write*price.Input, p.Write*price.Input
	return price
}

// The providers' prices, from their pricing pages. Output costs five times as much as input at Anthropic;
// only model-written summaries have any.
const output = 5

// Anthropic returns Anthropic's prices with a cache lifetime of five minutes.
func Anthropic() Prices {
	return Prices{Name: "anthropic 5m", Read: 0.1, Write: 1.25, Output: output, TTL: 5 * time.Minute}
}

// AnthropicHour returns Anthropic's prices with a cache lifetime of an hour.
func AnthropicHour() Prices {
	return Prices{Name: "anthropic 1h", Read: 0.1, Write: 2, Output: output, TTL: time.Hour}
}

// OpenAI returns the prices of providers that cache automatically.
func OpenAI() Prices {
	return Prices{Name: "openai", Read: 0.1, Write: 1, Output: output, TTL: 10 * time.Minute, Automatic: true}
}

// Pace is the timing of a client's requests.
type Pace struct {
	Name  string        `json:"name"`
	Step  time.Duration `json:"step"`  // from one request to the next
	Every int           `json:"every"` // requests between pauses; 0: no pauses
	Pause time.Duration `json:"pause"`
}

// Warm is a client that never lets the provider's cache go cold.
func Warm() Pace { return Pace{Name: "warm", Step: 20 * time.Second} }

// WithGaps is a client whose user pauses after every 20 requests, for longer than any cache lives.
func WithGaps() Pace {
	return Pace{Name: "idle gaps", Step: 20 * time.Second, Every: 20, Pause: 3 * time.Hour}
}

// At returns the time of a request, counted from 0.
func (p Pace) At(request int) time.Time {
	start := time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
	at := start.Add(time.Duration(request) * p.Step)
	if p.Every > 0 {
		at = at.Add(time.Duration(request/p.Every) * p.Pause)
	}
	return at
}

// Bill is the cost of a session's prompts.
type Bill struct {
	Requests int     `json:"requests"`
	TooLong  int     `json:"too_long"` // prompts larger than the window
	Busts    int     `json:"busts"`    // prompts that do not extend the one before
	Tokens   float64 `json:"tokens"`   // sent, the model's own
	Cost     float64 `json:"cost"`     // in tokens of plain input
	Largest  float64 `json:"largest"`  // prompt, as a share of its limit

	// Held counts the identifiers from earlier turns that the next turn uses and its prompt had.
	Held Share `json:"held"`

	sofar []float64 // Cost after each request of the client
}

// requested notes that a request of the client has been charged.
func (b *Bill) requested() { b.sofar = append(b.sofar, b.Cost) }

// worst returns the largest extra cost of a session over another, if it ends after any of its requests, in
// percent.
func (b *Bill) worst(other *Bill) float64 {
	worst := math.Inf(-1)
	for i := range min(len(b.sofar), len(other.sofar)) {
		worst = max(worst, 100*(b.sofar[i]/other.sofar[i]-1))
	}
	return worst
}

// add charges a prompt by its cache reads and writes, and an answer if it is part of the policy's price.
func (b *Bill) add(prices Prices, read, write, output float64) {
	b.Requests++
	b.Tokens += read + write
	b.Cost += prices.Read*read + prices.Write*write + prices.Output*output
}

// measure notes a prompt's share of its limit.
func (b *Bill) measure(share float64) {
	b.Largest = max(b.Largest, share)
	if share > 1 {
		b.TooLong++
	}
}

// against returns the extra cost of a bill over another, in percent.
func (b *Bill) against(other Bill) float64 {
	if other.Cost == 0 {
		return 0
	}
	return 100 * (b.Cost/other.Cost - 1)
}
