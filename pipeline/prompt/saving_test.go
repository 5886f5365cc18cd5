package prompt

import (
	"testing"

	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// The prices of a model like Claude Sonnet 4.5, in USD per million tokens.
var price = tokens.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75, CacheWrite1h: 6}

func TestSavingIsNetOfCacheRewrites(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		saving saving
		want   int64
	}{
		"nothing reported, nothing claimed": {
			saving{price: price, before: 100_000, after: 40_000}, 0,
		},
		"no cache: input not sent at the price of input": {
			saving{price: price, before: 100_000, after: 40_000, usage: wire.Usage{Reported: true, Input: 40_000}},
			60_000 * 3,
		},
		"cached prompt: what is not sent would have been read": {
			saving{price: price, before: 100_000, after: 40_000, fresh: 2_000,
				usage: wire.Usage{Reported: true, Input: 10, CacheRead: 38_000, CacheWrite: 1_990}},
			60_000 * 3 / 10,
		},
		"epoch: the rewritten prefix is paid as a write instead of a read": {
			saving{price: price, before: 150_000, after: 80_000, fresh: 2_000, epoch: true,
				usage: wire.Usage{Reported: true, CacheRead: 20_000, CacheWrite: 60_000}},
			70_000*3/10 - 58_000*375/100 + 58_000*3/10,
		},
		"a prompt that grew saves nothing": {
			saving{price: price, before: 10, after: 20, usage: wire.Usage{Reported: true, Input: 20}}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.saving.microUSD(); got != test.want {
				t.Errorf("net %d µ$, want %d", got, test.want)
			}
		})
	}
}
