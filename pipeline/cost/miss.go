package cost

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Cause says why a provider did not read from its cache what it should have had
// there; the values of the label of palimpsest_provider_cache_bust_total.
type Cause string

// The causes of a cache miss.
const (
	None               Cause = ""                     // nothing was missed
	TTLExpiry          Cause = "ttl_expiry"           // the cache had expired by the clock
	PrefixChangeOurs   Cause = "prefix_change_ours"   // we changed what had been sent before
	PrefixChangeClient Cause = "prefix_change_client" // the client did: system, tools, model or history
	ColdStart          Cause = "cold_start"           // the lane's first prompt
	Provider           Cause = "provider"             // none of these: evicted, or another machine answered
)

// Causes returns all causes of a miss.
func Causes() []Cause {
	return []Cause{TTLExpiry, PrefixChangeOurs, PrefixChangeClient, ColdStart, Provider}
}

// How long a provider's cache keeps a prefix that nobody reads.
const (
	shortTTL = 5 * time.Minute // Anthropic, and where nothing else is known
	longTTL  = time.Hour       // Anthropic, where a marker asks for it
)

// leastImplicit is the shortest prompt that is cached by providers who do it unasked.
const leastImplicit = 1024

// Prompt is what decides how much of a prompt a provider's cache can have.
type Prompt struct {
	At         time.Time // when it was sent
	Model      string    // that was asked for: each has a cache of its own
	Key        uuid.UUID // provider key that it went out with: each account has a cache of its own; uuid.Nil if not known
	Fixed      uint64    // hash of what precedes the messages; 0: not known
	Released   string    // how its thinking is released from its binding; empty if it is not
	Projection int       // number of the projection in it; 0 if none
	Position   int       // messages of the client's list
}

// Cached is the newest prompt of a lane that the provider answered, and what its
// cache has of it.
type Cached struct {
	Prompt

	Tokens int           // that the cache has; 0 if none
	TTL    time.Duration // for how long, unless they are read again
}

// Exchange is a prompt with its answer, as far as money is concerned.
type Exchange struct {
	Prompt

	Price tokens.Price
	Usage wire.Usage

	Sizes

	First    bool // no earlier prompt of the lane is known to anybody
	Summary  bool // the client goes on from a summary of its own
	Shared   int  // messages that the prompt before had as well
	Epoch    bool // the projection was made in this exchange
	Bypassed bool // the client asked for its prompt to be left as it is
	Marked   bool // the prompt has cache markers
	Implicit bool // the provider caches unasked

	Life  time.Duration // for how long the prompt asks to be kept; 0: not known
	Least int           // tokens of the shortest prompt that is kept; 0: not known
}

// Sizes are the sizes of a prompt, in the model's tokens.
type Sizes struct {
	Before   int // estimate of the prompt as the client sent it
	After    int // and as it was sent
	Ahead    int // of both, the part before the messages
	Limit    int // what the model takes; 0 if unknown
	Replayed int // estimate of what was sent up to the projection's end; 0 if none
	Fresh    int // estimate of what was sent behind the messages shared with the prompt before
}

// Miss is what a provider did not read from its cache although it should have
// been there.
type Miss struct {
	Cause  Cause // None: nothing was missed
	Tokens int   // 0 in the first prompt of a lane: nothing could be there
}

// Miss finds out what was missed and why. before is the lane's newest prompt before
// this one; nil if it is not known. Whether the cache had expired is read off the clock
// alone: one answer without a cache read says nothing about it where many machines
// answer for a provider.
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

// Expected estimates how many tokens of the prompt the provider reads from its cache.
// before is as for Miss.
func (e *Exchange) Expected(before *Cached) int {
	if before == nil || !(e.Marked || e.Implicit) || e.cause(before) != Provider {
		return 0
	}
	return max(0, min(before.Tokens, e.After-e.Fresh))
}

// caches reports whether the provider was to cache the prompt.
func (e *Exchange) caches() bool {
	if e.Usage.CacheRead+e.Usage.CacheWrite > 0 || e.Marked {
		return true
	}
	return e.Implicit && e.Usage.Prompt() >= cmp.Or(e.Least, leastImplicit)
}

// slack is by how much a read may fall short before it counts as a miss: OpenAI
// caches in steps of 128 tokens, and what is fresh is estimated.
func slack(expected int) int { return 256 + expected/50 }

// cause returns why something was missed. Where both sides have changed the prompt,
// it is the client's change if nothing could have been left of the cache whatever we
// did, else ours.
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

// changedByUs reports whether we sent otherwise what the prompt before had as well.
func (e *Exchange) changedByUs(before *Cached) bool {
	switch {
	case e.Released != before.Released, e.Epoch:
		return true
	case e.Projection == before.Projection, e.Bypassed:
		return false
	default:
		// A history that was rewound has an older projection again.
		return e.Projection > before.Projection || e.Shared >= before.Position
	}
}

// Cached returns what the provider's cache has once it has answered. before is as
// for Miss.
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
		cached.TTL = before.TTL // it was read, which keeps it as long again
	}
	cached.Tokens = usage.CacheRead + usage.CacheWrite
	if e.Implicit && usage.Prompt() >= cmp.Or(e.Least, leastImplicit) {
		cached.Tokens = usage.Prompt()
	}
	return cached
}
