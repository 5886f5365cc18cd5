package cost

import (
	"math"

	"palimpsest/pipeline/tokens"
)

// Money is what an exchange cost and saved at list prices, in millionths of a US
// dollar, and what it missed. Net can be negative. It is input not sent, plus Unread,
// cached input not read, minus Rewritten, the cache that our change rewrote. All
// three are 0 where the client's prompt could not have been sent.
type Money struct {
	Cost, Net         int64
	Unread, Rewritten int64
	Reach             bool // the provider would have refused the client's prompt, and answered ours
	Miss              Miss
}

// Money returns what the exchange cost and saved. before is the lane's newest prompt
// before this one; nil if it is not known. Where the provider reported no prompt nothing
// is claimed but what was estimated to be paid.
func (e *Exchange) Money(before *Cached) Money {
	usage := e.Usage
	var money Money
	if usage.Reported && usage.Prompt() > 0 {
		miss := e.Miss(before)
		if baseline := e.baseline(); baseline.Fits() {
			money = e.cheaper(baseline, before, miss)
		} else {
			money.Reach = e.After <= e.Limit
		}
		money.Miss = miss
	}
	money.Cost = e.costs(e.Price)
	return money
}

// costs returns what was sent and answered costs at a price, in millionths of a US dollar.
func (e *Exchange) costs(price tokens.Price) int64 {
	usage := e.Usage
	return price.MicroUSD(usage.Input, usage.CacheRead, usage.CacheWrite-usage.CacheWrite1h, usage.CacheWrite1h, usage.Output)
}

func (e *Exchange) baseline() Baseline {
	return Baseline{Sent: e.Before, Ahead: e.Ahead, Grown: e.Fresh, Limit: e.Limit}
}

// cheaper returns what the exchange saved against the cheaper of the client's prompt and that
// of a client that compacted itself.
func (e *Exchange) cheaper(baseline Baseline, before *Cached, miss Miss) Money {
	money := e.saved(e.Before, before, miss)
	isCached := e.Marked || e.Implicit || e.Usage.CacheRead+e.Usage.CacheWrite > 0
	if size, summary, ok := baseline.Compacted(e.Price, isCached); ok {
		other := e.saved(size, before, miss)
		other.Net += int64(math.Round(summary))
		if other.Net < money.Net {
			return other
		}
	}
	return money
}

// saved returns what the exchange saved against a prompt of some size, as the package says.
// What was added to a prompt counts against it.
func (e *Exchange) saved(size int, before *Cached, miss Miss) Money {
	notSent := float64(size - e.After)
	known := before != nil && before.Tokens > 0
	price := e.Price.Of(size)
	dearer := e.costs(price) - e.costs(e.Price) // of a longer prompt, the rest of the request, too
	if e.Usage.CacheRead+e.Usage.CacheWrite == 0 && !known {
		return Money{Net: int64(math.Round(notSent*price.Input)) + dearer}
	}
	written, read := e.written(price), price.CacheRead
	share := e.readShare(miss)
	unread, rewritten := notSent*share*read, 0.0
	if miss.Cause == PrefixChangeOurs {
		paid := e.Price.Of(e.Usage.Prompt())
		rewritten = float64(miss.Tokens) * (e.written(paid) - paid.CacheRead)
	}
	return Money{
		Net:    int64(math.Round(unread+notSent*(1-share)*written-rewritten)) + dearer,
		Unread: int64(math.Round(unread)), Rewritten: int64(math.Round(rewritten)),
	}
}

// readShare returns which part of what was not sent would have come from the cache.
func (e *Exchange) readShare(miss Miss) float64 {
	if miss.Cause == PrefixChangeOurs || e.Replayed <= 0 {
		return 1
	}
	return min(1, float64(e.Usage.CacheRead)/float64(e.Replayed))
}

// written returns the mean price, in US dollars for a million tokens, of what the
// provider did not read from its cache in this exchange, by a price of its tokens.
func (e *Exchange) written(price tokens.Price) float64 {
	usage := e.Usage
	size := usage.Input + usage.CacheWrite
	if size == 0 {
		return price.Input
	}
	hour := float64(usage.CacheWrite1h)
	paid := float64(usage.Input)*price.Input + (float64(usage.CacheWrite)-hour)*price.CacheWrite + hour*price.CacheWrite1h
	return paid / float64(size)
}
