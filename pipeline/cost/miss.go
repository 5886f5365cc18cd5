package cost

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Cause is the reason for a cache miss of the provider. Its values are those of the label of
// palimpsest_provider_cache_bust_total.
type Cause string

// The causes of a cache miss.
const (
	None               Cause = ""                     // no miss
	TTLExpiry          Cause = "ttl_expiry"           // the cache expired
	PrefixChangeOurs   Cause = "prefix_change_ours"   // we changed content that had been sent before
	PrefixChangeClient Cause = "prefix_change_client" // the client changed it: system, tools, model or history
	ColdStart          Cause = "cold_start"           // the lane's first prompt
	Provider           Cause = "provider"             // any other reason: evicted, or another machine answered
)

// Causes returns all causes of a miss.
func Causes() []Cause {
	return []Cause{TTLExpiry, PrefixChangeOurs, PrefixChangeClient, ColdStart, Provider}
}

// How long a provider's cache keeps an unused prefix.
const (
	shortTTL = 5 * time.Minute // Anthropic, and the default
	longTTL  = time.Hour       // Anthropic, if a marker requests it
)

// leastImplicit is the shortest prompt that providers cache without markers.
const leastImplicit = 1024

// Prompt holds the properties of a prompt that determine how much of it a provider's cache can have.
type Prompt struct {
	At         time.Time // when it was sent
	Model      string    // requested model: each has its own cache
	Key        uuid.UUID // provider key in use: each account has its own cache; uuid.Nil if unknown
	Fixed      uint64    // hash of the part before the messages; 0 if unknown
	Released   string    // how its thinking is released from its binding; "" if it isn't
	Projection int       // number of its projection; 0 if absent
	Position   int       // messages of the client's list
}

// Cached is the newest answered prompt of a lane, and the part of it in the provider's cache.
type Cached struct {
	Prompt

	Tokens int           // in the cache
	TTL    time.Duration // lifetime unless the tokens are read again
}

// Exchange is a prompt with its answer, reduced to the inputs of its cost.
type Exchange struct {
	Prompt

	Price tokens.Price
	Usage wire.Usage

	Sizes

	First    bool // no earlier prompt of the lane is known
	Summary  bool // the client continues from its own summary
	Shared   int  // messages that the previous prompt had as well
	Epoch    bool // the projection was made in this exchange
	Bypassed bool // the client asked for an unchanged prompt
	Marked   bool // the prompt has cache markers
	Implicit bool // the provider caches without markers

	Life  time.Duration // requested cache lifetime of the prompt; 0 if unknown
	Least int           // tokens of the shortest cached prompt; 0 if unknown
}

// Sizes are the sizes of a prompt, in the model's tokens.
type Sizes struct {
	Before   int // estimate of the prompt as the client sent it
	After    int // estimate as it was sent
	Ahead    int // of both, the part before the messages
	Limit    int // the model's limit; 0 if unknown
	Replayed int // estimate of the part sent up to the projection's end; 0 if absent
	Fresh    int // estimate of the part sent after the messages shared with the previous prompt
}

// Miss is the part of a prompt that a provider should have read from its cache but did not.
type Miss struct {
	Cause  Cause // None for no miss
	Tokens int   // 0 in the first prompt of a lane, because nothing could be cached
}

// Miss returns the size and cause of a cache miss. before is the lane's previous prompt; nil if unknown. Only
// the clock decides whether the cache had expired, because an answer without a cache read is no proof if the
// provider has many machines.
func (e *Exchange) Miss(before *Cached) Miss {
	if !e.Usage.Reported || !e.caches() {
		return Miss{}
	}
	if before == nil {
		switch {
		case e.First && e.Summary:
			return Miss{Cause: PrefixChangeClient}
		case e.First && e.Usage.CacheRead == 0:
			return Miss{Cause: ColdStart}
		default:
			return Miss{}
		}
	}
	expected := min(before.Tokens, e.Usage.Prompt()-e.Fresh)
	missed := expected - e.Usage.CacheRead
	if missed <= slack(expected) {
		return Miss{}
	}
	return Miss{Cause: e.cause(before), Tokens: missed}
}

// Expected estimates how many tokens of the prompt the provider reads from its cache. before is as for Miss.
func (e *Exchange) Expected(before *Cached) int {
	if before == nil || !(e.Marked || e.Implicit) || e.cause(before) != Provider {
		return 0
	}
	return max(0, min(before.Tokens, e.After-e.Fresh))
}

// caches reports whether the provider should have cached the prompt.
func (e *Exchange) caches() bool {
	if e.Usage.CacheRead+e.Usage.CacheWrite > 0 || e.Marked {
		return true
	}
	return e.Implicit && e.Usage.Prompt() >= cmp.Or(e.Least, leastImplicit)
}

// slack is how far a read may fall short before it counts as a miss, because OpenAI caches in steps of 128
// tokens, and fresh content is estimated.
func slack(expected int) int { return 256 + expected/50 }

// cause returns the reason for a miss. If both sides have changed the prompt, it is the client's change if
// that alone would have invalidated the whole cache, otherwise ours.
func (e *Exchange) cause(before *Cached) Cause {
	switch {
	case e.At.Sub(before.At) >= before.TTL:
		return TTLExpiry
	case e.Model != before.Model, before.Fixed != 0 && e.Fixed != before.Fixed:
		return PrefixChangeClient
	case e.changedByUs(before):
		return PrefixChangeOurs
	case e.Shared < before.Position, e.Projection != before.Projection:
		return PrefixChangeClient
	default:
		return Provider
	}
}

// changedByUs reports whether we changed content that the previous prompt also had.
func (e *Exchange) changedByUs(before *Cached) bool {
	switch {
	case e.Released != before.Released, e.Epoch:
		return true
	case e.Projection == before.Projection, e.Bypassed:
		return false
	default:
		// A rewound history gets an older projection back.
		return e.Projection > before.Projection || e.Shared >= before.Position
	}
}

// Cached returns the content of the provider's cache after it has answered. before is as for Miss.
func (e *Exchange) Cached(before *Cached) Cached {
	cached := Cached{Prompt: e.Prompt, TTL: shortTTL}
	usage := e.Usage
	switch {
	case e.Implicit:
		cached.TTL = cmp.Or(e.Life, shortTTL)
	case usage.CacheWrite > 0:
		if usage.CacheWrite1h == usage.CacheWrite {
			cached.TTL = longTTL
		}
	case before != nil && before.TTL > 0 && usage.CacheRead > 0:
		cached.TTL = before.TTL // a read renews the lifetime
	}
	cached.Tokens = usage.CacheRead + usage.CacheWrite
	if e.Implicit && usage.Prompt() >= cmp.Or(e.Least, leastImplicit) {
		cached.Tokens = usage.Prompt()
	}
	return cached
}
