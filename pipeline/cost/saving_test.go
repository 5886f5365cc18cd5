package cost_test

import (
	"math"
	"testing"
	"time"

	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// C11: the realized net of an exchange.
func TestNetIsTheDifferenceToThePromptAsItCame(t *testing.T) {
	t.Parallel()
	epoch := func(e *cost.Exchange) {
		e.Projection, e.Epoch, e.Before, e.After, e.Replayed = 2, true, 152_000, 82_000, 40_000
		e.Usage = wire.Usage{Reported: true, CacheRead: 20_000, CacheWrite: 62_000}
	}
	for name, test := range map[string]struct {
		change func(*cost.Exchange, *cost.Cached)
		before *cost.Cached
		want   int64
	}{
		"nothing reported, nothing claimed": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Usage = wire.Usage{} }, warm(), 0,
		},
		"no cache: what is not sent at the price of input": {
			func(e *cost.Exchange, _ *cost.Cached) {
				e.Usage, e.Marked = wire.Usage{Reported: true, Input: 102_000}, false
			}, nil, 60_000 * 3,
		},
		"warm: what is not sent would have been read": {
			func(*cost.Exchange, *cost.Cached) {}, warm(), 60_000 * 3 / 10,
		},
		"epoch while warm: what stands for it is written instead of read": {
			func(e *cost.Exchange, _ *cost.Cached) { epoch(e) }, warm(), 70_000*3/10 - 60_000*(375-30)/100,
		},
		"epoch after the cache had expired: what is not sent would have been written too": {
			func(e *cost.Exchange, _ *cost.Cached) {
				epoch(e)
				e.At = noon().Add(time.Hour)
				e.Usage.CacheRead, e.Usage.CacheWrite = 0, 82_000
			}, warm(), 70_000 * 375 / 100,
		},
		"expired under a projection: half of its place is still read": {
			func(e *cost.Exchange, _ *cost.Cached) {
				e.At = noon().Add(time.Hour)
				e.Usage.CacheRead, e.Usage.CacheWrite, e.Usage.Input = 25_000, 77_000, 0
			}, warm(), 30_000*3/10 + 30_000*375/100,
		},
		"written for an hour": {
			func(e *cost.Exchange, _ *cost.Cached) {
				e.At = noon().Add(2 * time.Hour)
				e.Usage = wire.Usage{Reported: true, CacheWrite: 102_000, CacheWrite1h: 102_000}
			}, warm(), 60_000 * 6,
		},
		"a provider that caches unasked finds nothing after an epoch": {
			func(e *cost.Exchange, _ *cost.Cached) {
				epoch(e)
				e.Marked, e.Implicit = false, true
				e.Usage = wire.Usage{Reported: true, Input: 82_000}
			}, warm(), 70_000*3/10 - 80_000*(300-30)/100,
		},
		"what was added counts against it": {
			func(e *cost.Exchange, _ *cost.Cached) { e.Before, e.After, e.Replayed = 101_000, 102_000, 0 }, warm(), -1_000 * 3 / 10,
		},
		"a longer prompt would have made the whole request dearer": {
			func(e *cost.Exchange, _ *cost.Cached) {
				e.Price.LongAbove, e.Price.LongInput, e.Price.LongOutput = 150_000, 2, 1.5
				e.Usage = wire.Usage{Reported: true, CacheRead: 100_000, CacheWrite: 2_000, Output: 1_000}
			}, warm(), 60_000*6/10 + 100_000*3/10 + 2_000*375/100 + 1_000*15/2,
		},
		"both prompts are long": {
			func(e *cost.Exchange, _ *cost.Cached) {
				e.Price.LongAbove, e.Price.LongInput, e.Price.LongOutput = 90_000, 2, 1.5
			}, warm(), 60_000 * 6 / 10,
		},
		"epoch of a long prompt: its price applies to what is written and to what would have been read": {
			func(e *cost.Exchange, _ *cost.Cached) {
				epoch(e)
				e.Price.LongAbove, e.Price.LongInput, e.Price.LongOutput = 70_000, 2, 1.5
			}, warm(), 70_000*6/10 - 60_000*(750-60)/100,
		},
		"the first prompt that is cached": {
			func(e *cost.Exchange, _ *cost.Cached) {
				e.First = true
				e.Usage = wire.Usage{Reported: true, CacheWrite: 102_000}
			}, nil, 60_000 * 375 / 100,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange := next()
			test.change(exchange, test.before)
			if got := exchange.Money(test.before).Net; got < test.want-5 || got > test.want+5 {
				t.Errorf("net %d µ$, want %d", got, test.want)
			}
		})
	}
}

func TestCostIsWhatTheProviderCharges(t *testing.T) {
	t.Parallel()
	exchange := next()
	exchange.Usage = wire.Usage{Reported: true, Input: 100, CacheRead: 1_000, CacheWrite: 300, CacheWrite1h: 100, Output: 10}
	if got, want := exchange.Money(warm()).Cost, int64(300+300+750+600+150); got != want {
		t.Errorf("cost %d µ$, want %d", got, want)
	}
}

// C11: net is made of input not sent, cached input not read and cache rewritten.
func TestNetHasItsParts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change            func(*cost.Exchange)
		unread, rewritten int64
	}{
		"warm: all of what is not sent would have been read": {func(*cost.Exchange) {}, 60_000 * 3 / 10, 0},
		"an epoch while warm rewrites": {func(e *cost.Exchange) {
			e.Projection, e.Epoch, e.Before, e.After, e.Replayed = 2, true, 152_000, 82_000, 40_000
			e.Usage = wire.Usage{Reported: true, CacheRead: 20_000, CacheWrite: 62_000}
		}, 70_000 * 3 / 10, 60_000 * (375 - 30) / 100},
		"expired: half would have been read": {func(e *cost.Exchange) {
			e.At = noon().Add(time.Hour)
			e.Usage.CacheRead, e.Usage.CacheWrite, e.Usage.Input = 25_000, 77_000, 0
		}, 30_000 * 3 / 10, 0},
		"nothing reported": {func(e *cost.Exchange) { e.Usage = wire.Usage{} }, 0, 0},
	} {
		exchange := next()
		test.change(exchange)
		money := exchange.Money(warm())
		if got := money.Unread - test.unread; got < -5 || got > 5 {
			t.Errorf("%s: %d µ$ not read, want %d", name, money.Unread, test.unread)
		}
		if got := money.Rewritten - test.rewritten; got < -5 || got > 5 {
			t.Errorf("%s: %d µ$ rewritten, want %d", name, money.Rewritten, test.rewritten)
		}
	}
}

// A client that compacts its own history does so at 92 % of what the model takes. The numbers
// are those of the package's doc.
func TestBaselineOfAClientThatCompactsItself(t *testing.T) {
	t.Parallel()
	cached := tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	for _, test := range []struct {
		baseline      cost.Baseline
		fits          bool
		size, summary int
	}{
		{cost.Baseline{Sent: 184_000, Ahead: 20_000, Grown: 2_000, Limit: 200_000}, true, 0, 0},
		{cost.Baseline{Sent: 190_000, Ahead: 20_000, Grown: 2_000, Limit: 200_000}, true, 34_000, 25_650},
		{cost.Baseline{Sent: 190_000, Ahead: 20_000, Grown: 90_000, Limit: 200_000}, true, 34_000, 76_950}, // 6,000 of it above 92 %
		{cost.Baseline{Sent: 200_000, Ahead: 20_000, Grown: 16_000, Limit: 200_000}, true, 44_000, 205_200},
		{cost.Baseline{Sent: 200_001, Ahead: 20_000, Grown: 2_000, Limit: 200_000}, false, 44_001, 25_650},
		{cost.Baseline{Sent: 9_500, Ahead: 5_000, Grown: 100, Limit: 10_000}, true, 0, 0}, // the summary would not make it shorter
		{cost.Baseline{Sent: 900_000, Ahead: 20_000, Grown: 2_000}, true, 0, 0},           // nobody knows what the model takes
	} {
		size, summary, ok := test.baseline.Compacted(cached, true)
		if fits := test.baseline.Fits(); fits != test.fits || size != test.size || int(math.Round(summary)) != test.summary || ok != (test.size > 0) {
			t.Errorf("%+v: fits %v, compacted %d for %.0f µ$; want %v, %d, %d", test.baseline, fits, size, summary, test.fits, test.size, test.summary)
		}
	}
}

// A client writes its summary with a long prompt, and pays the price of one.
func TestSummaryOfALongPromptHasItsPrice(t *testing.T) {
	t.Parallel()
	dearer := tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, LongAbove: 100_000, LongInput: 2, LongOutput: 1.5}
	baseline := cost.Baseline{Sent: 190_000, Ahead: 20_000, Grown: 2_000, Limit: 200_000}
	size, summary, ok := baseline.Compacted(dearer, true)
	if want := (184_000*0.6 + 8_000*(22.5+7.5)) / 8; size != 34_000 || math.Round(summary) != want || !ok {
		t.Errorf("compacted %d for %.0f µ$, want 34000 for %.0f", size, summary, want)
	}
}

// What is claimed of a warm cache, at $0.30 for a million tokens read from it: money where
// the client's prompt could have been sent, reach where it could not.
func TestMoneyIsClaimedOnlyOfWhatCouldHaveBeenSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*cost.Exchange)
		net    int64
		reach  bool
	}{
		"the prompt fits":                          {func(e *cost.Exchange) { e.Before = 162_000 }, 60_000 * 3 / 10, false},
		"compacted by the client it had cost less": {func(e *cost.Exchange) { e.Before = 190_000 }, (34_000-102_000)*3/10 + 25_650, false},
		"the summary had cost more":                {func(e *cost.Exchange) { e.Before, e.Fresh = 190_000, 6_000 }, (190_000 - 102_000) * 3 / 10, false},
		"the provider would have refused it":       {func(e *cost.Exchange) { e.Before = 210_000 }, 0, true},
		"it was not shortened below the limit":     {func(e *cost.Exchange) { e.Before, e.Limit = 210_000, 100_000 }, 0, false},
		"it was refused":                           {func(e *cost.Exchange) { e.Before, e.Usage = 210_000, wire.Usage{} }, 0, false},
		"an epoch of one that does not fit": {func(e *cost.Exchange) {
			e.Projection, e.Epoch, e.Before, e.After, e.Replayed = 2, true, 210_000, 82_000, 40_000
			e.Usage = wire.Usage{Reported: true, CacheRead: 20_000, CacheWrite: 62_000}
		}, 0, true},
		"nobody knows what the model takes": {func(e *cost.Exchange) { e.Before, e.Limit = 302_000, 0 }, 200_000 * 3 / 10, false},
	} {
		exchange := next()
		exchange.Ahead, exchange.Limit = 20_000, 200_000
		test.change(exchange)
		money := exchange.Money(warm())
		if money.Net < test.net-5 || money.Net > test.net+5 || money.Reach != test.reach {
			t.Errorf("%s: net %d µ$, reach %v; want %d, %v", name, money.Net, money.Reach, test.net, test.reach)
		}
		if money.Reach && (money.Unread != 0 || money.Rewritten != 0) {
			t.Errorf("%s: %+v prices what could not have been sent", name, money)
		}
	}
}
