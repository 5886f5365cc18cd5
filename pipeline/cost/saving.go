package cost

import (
	"math"

	"palimpsest/pipeline/tokens"
)

// Money is the cost and savings of an exchange at list prices, in millionths of a US dollar. Net can be
// negative. It is input not sent, plus Unread (cached input not read), minus Rewritten (the cache that our
// change rewrote). All three are 0 if the client's prompt could not have been sent.
type Money struct {
	Cost, Net         int64
	Unread, Rewritten int64
	Reach             bool // the provider would have rejected the client's prompt, but answered ours
	Miss              Miss
}

// Money returns the cost and savings of the exchange. before is the lane's previous prompt; nil if unknown.
// If the provider reported no prompt, only the estimated payment is counted.
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

// costs returns the cost of prompt and answer at a price, in millionths of a US dollar.
func (e *Exchange) costs(price tokens.Price) int64 {
	usage := e.Usage
	return price.MicroUSD(usage.Input, usage.CacheRead, usage.CacheWrite-usage.CacheWrite1h, usage.CacheWrite1h, usage.Output)
}

func (e *Exchange) baseline() Baseline {
	return Baseline{Sent: e.Before, Ahead: e.Ahead, Grown: e.Fresh, Limit: e.Limit}
}

// cheaper returns the savings against the cheaper of the client's prompt and that of a client that compacts
// itself.
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

// saved returns the savings against a prompt of some size, as the package comment explains. Text added to a
// prompt reduces them.
func (e *Exchange) saved(size int, before *Cached, miss Miss) Money {
	notSent := float64(size - e.After)
	known := before != nil && before.Tokens > 0
	price := e.Price.Of(size)
	dearer := e.costs(price) - e.costs(e.Price) // of the whole request, which a longer prompt makes dearer
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

// readShare returns which part of the input not sent would have been read from the cache.
func (e *Exchange) readShare(miss Miss) float64 {
	if miss.Cause == PrefixChangeOurs || e.Replayed <= 0 {
		return 1
	}
	return min(1, float64(e.Usage.CacheRead)/float64(e.Replayed))
}

// written returns the mean price of the tokens that the provider did not read from its cache in this
// exchange, in US dollars for a million tokens, given the price of each kind.
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
