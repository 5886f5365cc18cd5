package cost_test

import (
	"testing"
	"time"

	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// The prices of a model like Claude Sonnet 4.5, in USD per million tokens.
var price = tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6}

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// warm is a lane's last prompt: 40 messages, 100,000 tokens, all of them cached for
// five minutes.
func warm() *cost.Cached {
	return &cost.Cached{
		Prompt: cost.Prompt{At: noon(), Model: "claude-sonnet-4-5", Fixed: 7, Projection: 1, Position: 40},
		Tokens: 100_000, TTL: 5 * time.Minute,
	}
}

// next is the exchange that goes on from warm two minutes later with 2,000 tokens
// more, and finds everything in the cache.
func next() *cost.Exchange {
	prompt := warm().Prompt
	prompt.At, prompt.Position = noon().Add(2*time.Minute), 42
	return &cost.Exchange{
		Prompt: prompt, Price: price, Usage: wire.Usage{Reported: true, Input: 10, CacheRead: 100_000, CacheWrite: 1_990, Output: 100},
		Sizes: cost.Sizes{Before: 162_000, After: 102_000, Replayed: 50_000, Fresh: 2_000}, Shared: 40, Marked: true,
	}
}

// lost returns next without anything in the cache but what precedes the messages.
func lost() *cost.Exchange {
	exchange := next()
	exchange.Usage.CacheRead, exchange.Usage.CacheWrite = 20_000, 81_990
	return exchange
}

// C11: every miss has one cause.
func TestEveryMissIsAttributed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*cost.Exchange, *cost.Cached)
		cause  cost.Cause
	}{
		"nothing changed": {func(*cost.Exchange, *cost.Cached) {}, cost.Provider},
		"five minutes have passed": {
			func(e *cost.Exchange, _ *cost.Cached) { e.At = noon().Add(5 * time.Minute) }, cost.TTLExpiry,
		},
		"it is kept for an hour": {
			func(e *cost.Exchange, before *cost.Cached) { e.At, before.TTL = noon().Add(40*time.Minute), time.Hour }, cost.Provider,
		},
		"an hour has passed": {
			func(e *cost.Exchange, before *cost.Cached) { e.At, before.TTL = noon().Add(61*time.Minute), time.Hour }, cost.TTLExpiry,
		},
		"an epoch": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Projection, e.Epoch = 2, true }, cost.PrefixChangeOurs,
		},
		"an epoch after the cache had gone cold changed nothing for the worse": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Projection, e.Epoch, e.At = 2, true, noon().Add(time.Hour) }, cost.TTLExpiry,
		},
		"another replica's epoch": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Projection = 2 }, cost.PrefixChangeOurs,
		},
		"thinking was released": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Released = "drop_block" }, cost.PrefixChangeOurs,
		},
		"the originals went to the client's own summary": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Projection = 0 }, cost.PrefixChangeOurs,
		},
		"the client asked for a bypass": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Projection, e.Bypassed = 0, true }, cost.PrefixChangeClient,
		},
		"other tools": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Fixed = 8 }, cost.PrefixChangeClient,
		},
		"other tools and an epoch": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Fixed, e.Projection, e.Epoch = 8, 2, true }, cost.PrefixChangeClient,
		},
		"nobody knows what the tools were": {
			func(e *cost.Exchange, before *cost.Cached) { e.Fixed, before.Fixed = 8, 0 }, cost.Provider,
		},
		"another model": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Model = "claude-opus-4-5" }, cost.PrefixChangeClient,
		},
		"the client rewound": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Shared = 30 }, cost.PrefixChangeClient,
		},
		"the client rewound to before the epoch": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Shared, e.Projection = 5, 0 }, cost.PrefixChangeClient,
		},
		"the client rewound and an epoch": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Shared, e.Projection, e.Epoch = 30, 2, true }, cost.PrefixChangeOurs,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange, before := lost(), warm()
			test.change(exchange, before)
			if got := exchange.Miss(before); got != (cost.Miss{Cause: test.cause, Tokens: 80_000}) {
				t.Errorf("missed %+v, want 80,000 tokens for %q", got, test.cause)
			}
		})
	}
}

func TestFirstPromptOfALaneIsAColdStart(t *testing.T) {
	t.Parallel()
	exchange := next()
	exchange.First, exchange.Usage.CacheRead, exchange.Usage.CacheWrite = true, 0, 101_990
	if got := exchange.Miss(nil); got != (cost.Miss{Cause: cost.ColdStart}) {
		t.Errorf("missed %+v", got)
	}
	exchange.First = false // another process knows the lane
	if got := exchange.Miss(nil); got != (cost.Miss{}) {
		t.Errorf("a lane that is not known here has missed %+v", got)
	}
	exchange.First, exchange.Usage.CacheRead = true, 90_000 // another conversation has cached its beginning
	if got := exchange.Miss(nil); got != (cost.Miss{}) {
		t.Errorf("a first prompt that was read from the cache has missed %+v", got)
	}
}

// A cache works in steps, and fresh content is estimated: 256 tokens and two percent may be missing.
func TestMissBeginsWhereTheSlackEnds(t *testing.T) {
	t.Parallel()
	for read, missed := range map[int]int{100_000 - 2_256: 0, 100_000 - 2_257: 2_257} {
		exchange := next()
		exchange.Usage.CacheRead, exchange.Usage.CacheWrite = read, 101_990-read
		if got := exchange.Miss(warm()); got.Tokens != missed {
			t.Errorf("%d of 100,000 tokens were read: %d missed, want %d", read, got.Tokens, missed)
		}
	}
}

// A provider that caches unasked does so from 1,024 tokens on; one that was asked, or has read or
// written, caches any prompt.
func TestShortPromptIsCachedOnlyIfAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prompt, written  int
		least            int // tokens that the model caches unasked; 0 if unknown
		marked, implicit bool
		cause            cost.Cause
		cached           int
	}{
		"unasked, too short":                 {prompt: 1023, implicit: true},
		"unasked, long enough":               {prompt: 1024, implicit: true, cause: cost.ColdStart, cached: 1024},
		"unasked, too short for the model":   {prompt: 2047, least: 2048, implicit: true},
		"unasked, long enough for the model": {prompt: 2048, least: 2048, implicit: true, cause: cost.ColdStart, cached: 2048},
		"asked, short":                       {prompt: 1023, marked: true, cause: cost.ColdStart},
		"asked, written":                     {prompt: 23, written: 1000, marked: true, cause: cost.ColdStart, cached: 1000},
		"not asked, not unasked":             {prompt: 5000},
	} {
		exchange := next()
		exchange.First, exchange.Marked, exchange.Implicit, exchange.Least = true, c.marked, c.implicit, c.least
		exchange.Usage = wire.Usage{Reported: true, Input: c.prompt, CacheWrite: c.written, Output: 1}
		if got := exchange.Miss(nil); got.Cause != c.cause {
			t.Errorf("%s: %q, want %q", name, got.Cause, c.cause)
		}
		if got := exchange.Cached(nil); got.Tokens != c.cached {
			t.Errorf("%s: %d tokens are cached, want %d", name, got.Tokens, c.cached)
		}
	}
}

func TestCachedInputThatIsReadIsNotMissed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*cost.Exchange, *cost.Cached){
		"all of it":                      func(*cost.Exchange, *cost.Cached) {},
		"but for a step of the cache":    func(e *cost.Exchange, _ *cost.Cached) { e.Usage.CacheRead, e.Usage.Input = 99_840, 2_170 },
		"in spite of the time":           func(e *cost.Exchange, _ *cost.Cached) { e.At = noon().Add(9 * time.Minute) },
		"in spite of another projection": func(e *cost.Exchange, _ *cost.Cached) { e.Projection = 2 },
		"nothing was there":              func(e *cost.Exchange, before *cost.Cached) { e.Usage.CacheRead, before.Tokens = 0, 0 },
		"nobody asked for a cache": func(e *cost.Exchange, _ *cost.Cached) {
			e.Marked, e.Usage = false, wire.Usage{Reported: true, Input: 102_000}
		},
		"nothing was reported": func(e *cost.Exchange, _ *cost.Cached) { e.Usage = wire.Usage{} },
		"the client sent a short beginning only": func(e *cost.Exchange, _ *cost.Cached) {
			e.Shared, e.Position, e.Fresh = 4, 5, 500
			e.Usage = wire.Usage{Reported: true, CacheRead: 24_000, CacheWrite: 500}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange, before := next(), warm()
			change(exchange, before)
			if got := exchange.Miss(before); got != (cost.Miss{}) {
				t.Errorf("missed %+v", got)
			}
		})
	}
}

// C8: an answer without a cache read says that the provider missed once, not that
// the cache is cold.
func TestOneAnswerWithoutACacheReadIsNoColdCache(t *testing.T) {
	t.Parallel()
	before, exchange := warm(), next()
	exchange.Implicit, exchange.Marked = true, false
	exchange.Usage = wire.Usage{Reported: true, Input: 102_000}
	if got := exchange.Miss(before); got.Cause != cost.Provider {
		t.Errorf("the miss is put down to %q", got.Cause)
	}
	after := exchange.Cached(before)
	if after.Tokens != 102_000 || after.TTL != 5*time.Minute {
		t.Errorf("the cache is then taken to have %d tokens for %s", after.Tokens, after.TTL)
	}
	again := next()
	again.Implicit, again.At = true, exchange.At.Add(time.Minute)
	again.Usage = wire.Usage{Reported: true, Input: 104_000}
	again.Position, again.Shared = 44, 42
	if got := again.Miss(&after); got.Cause != cost.Provider || got.Tokens != 102_000 {
		t.Errorf("the next miss is %+v", got)
	}
}

func TestCacheLivesAsLongAsTheWireSays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		usage  wire.Usage
		before *cost.Cached
		want   time.Duration
		tokens int
	}{
		"written for five minutes": {wire.Usage{Reported: true, CacheRead: 10, CacheWrite: 100}, warm(), 5 * time.Minute, 110},
		"written for an hour":      {wire.Usage{Reported: true, CacheWrite: 100, CacheWrite1h: 100}, warm(), time.Hour, 100},
		"its end for five minutes": {wire.Usage{Reported: true, CacheWrite: 100, CacheWrite1h: 60}, warm(), 5 * time.Minute, 100},
		"only read":                {wire.Usage{Reported: true, CacheRead: 100}, &cost.Cached{TTL: time.Hour}, time.Hour, 100},
		"neither after an hour's":  {wire.Usage{Reported: true, Input: 100}, &cost.Cached{TTL: time.Hour}, 5 * time.Minute, 0},
		"neither":                  {wire.Usage{Reported: true, Input: 100}, warm(), 5 * time.Minute, 0},
	} {
		exchange := next()
		exchange.Usage = test.usage
		if got := exchange.Cached(test.before); got.TTL != test.want || got.Tokens != test.tokens {
			t.Errorf("%s: %d tokens for %s, want %d for %s", name, got.Tokens, got.TTL, test.tokens, test.want)
		}
	}
}

// Where no usage is reported, what the cache must still have counts as read.
func TestExpectedCacheReads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*cost.Exchange, *cost.Cached)
		want   int
	}{
		"all that was sent before": {func(*cost.Exchange, *cost.Cached) {}, 100_000},
		"it has expired":           {func(e *cost.Exchange, _ *cost.Cached) { e.At = noon().Add(time.Hour) }, 0},
		"an epoch":                 {func(e *cost.Exchange, _ *cost.Cached) { e.Epoch = true }, 0},
		"another model":            {func(e *cost.Exchange, _ *cost.Cached) { e.Model = "other" }, 0},
		"no caching asked for":     {func(e *cost.Exchange, _ *cost.Cached) { e.Marked = false }, 0},
		"a shorter prompt":         {func(e *cost.Exchange, _ *cost.Cached) { e.After = 60_000 }, 58_000},
		"nothing but new":          {func(e *cost.Exchange, _ *cost.Cached) { e.After = 1_000 }, 0},
	} {
		exchange, before := next(), warm()
		test.change(exchange, before)
		if got := exchange.Expected(before); got != test.want {
			t.Errorf("%s: %d tokens, want %d", name, got, test.want)
		}
	}
	if got := next().Expected(nil); got != 0 {
		t.Errorf("%d tokens of a prompt that nothing is known of", got)
	}
}

// What is estimated is paid, and claims nothing.
func TestEstimatedUsageClaimsNothing(t *testing.T) {
	t.Parallel()
	exchange := next()
	exchange.Usage = wire.Usage{Input: 2_000, CacheRead: 100_000, Output: 10}
	if got, want := exchange.Money(warm()), (cost.Money{Cost: 2_000*3 + 30_000 + 150}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
