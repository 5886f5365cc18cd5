package ipc

import (
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
)

// balance weighs reading a prompt on against writing a shorter one, in the model's tokens and at
// the model's list price.
//
// Whether to compact is the ski rental problem: go on reading a long prompt from the cache (rent),
// or pay once to write a shorter one (buy). The break-even rule needs no forecast: buy as soon as
// the rent paid so far has reached the price. However the session goes on, that never costs more
// than twice the best decision in hindsight, and no deterministic rule does better: Karlin,
// Manasse, Rudolph and Sleator, "Competitive snoopy caching", Algorithmica 3 (1988), 79–119.
//
// The rent of a request is the part of its prompt that a compaction would have removed. It is added
// up from the history itself, with each answer counted as one request, back to the last compaction.
// Therefore every replica computes the same sum, even after a restart, without state of its own.
type balance struct {
	read, write float64 // prices of a token
	rate        float64 // the model's tokens for one of o200k

	size     float64 // of the prompt
	goal     float64 // target size after a compaction
	left     float64 // estimated size after a compaction, without planning it
	fixed    float64 // the unchanging part before all messages
	fresh    float64 // written in any case
	requests int     // since the last compaction that read more than would be left
	rent     float64 // their cost of reading the excess
}

// byBreakEven reports whether the rule of rent or buy decides for the exchange.
func byBreakEven(exchange *pipeline.View) bool {
	return configOf(exchange).Trigger == TriggerBreakEven
}

// weigh returns the balance of a prompt of size tokens.
func weigh(exchange *pipeline.View, size int) balance {
	b := balance{size: float64(size), rate: rateOf(exchange, size)}
	b.read, b.write = cachePrices(exchange, size)
	b.fixed = b.rate * float64(exchange.Limits.Fixed+tokensOf(exchange.Conversation.Digests[:conversation.Lead(exchange.Conversation.Digests)]))
	b.fresh = b.rate * float64(fresh(exchange))
	b.goal = depth(configOf(exchange).MinContext, b.fixed)
	b.left = max(b.goal, b.fixed+b.rate*float64(newestKept(exchange, b.goal/b.rate, b.rate)))
	b.add(exchange)
	return b
}

// rateOf returns how many of the model's tokens make one of o200k in a prompt of size
// tokens.
func rateOf(exchange *pipeline.View, size int) float64 {
	return max(exchange.Limits.Factor, float64(size)/float64(max(1, exchange.Estimate(exchange.Lane.Projection))))
}

// depthShare is how much of minContext a compaction leaves of a conversation. A deeper cut
// costs less, and fidelity is its price: of the shares from 0.4 to 0.2 this one is where the
// measured curve bends, see docs/compaction-bench.md.
const depthShare = 0.23

// depth returns the target size of a compaction: the share of minContext plus the fixed part before
// the conversation, which is never cut. In small windows compressTo may ask for less.
func depth(minContext int, fixed float64) float64 {
	return fixed + depthShare*float64(minContext)
}

// newestShareByCost is newestShare by the rule of rent or buy. Of 0.3, 0.4, 0.5, and 0.7 it cost
// least on the recorded sessions while keeping as much of the content that later turns use, within
// 0.1 points, because records hold more names than the newest turns do in as many tokens. A few of
// the newest turns always stay.
const newestShareByCost = 0.4

// newestKept returns the o200k tokens of the newest turns that stay unchanged if a compaction goes
// down to goal o200k tokens. rate converts o200k tokens to the model's.
func newestKept(exchange *pipeline.View, goal, rate float64) int {
	config, turns := configOf(exchange), exchange.Conversation.Turns
	newest := min(float64(config.PreserveTokens)/rate, newestShareByCost*goal)
	size := 0
	for i, turn := range slices.Backward(turns) {
		next := tokensOf(exchange.Conversation.Digests[turn.From:turn.To])
		count := len(turns) - 1 - i
		if count >= config.PreserveLastTurns && (float64(size) >= newest || float64(size+next) > atMostTimes*newest) {
			break
		}
		size += next
	}
	return size
}

// add adds up the rent since the last compaction.
func (b *balance) add(exchange *pipeline.View) {
	least, from := b.left, 0
	if projection := exchange.Lane.Projection; projection != nil {
		least, from = max(least, float64(projection.After)), projection.Covers
	}
	size := b.size
	digests := exchange.Conversation.Digests
	for i := len(digests) - 1; i > from; i-- {
		size -= b.rate * float64(digests[i].Tokens)
		if size <= least {
			return
		}
		if digests[i].Role == conversation.Assistant && digests[i-1].Role != conversation.Assistant {
			b.requests++
			b.rent += (size - b.left) * b.read
		}
	}
}

// price returns the cost of a compaction that writes so many tokens to the cache instead of reading
// them from it.
func (b *balance) price(rewritten float64) float64 { return max(0, rewritten) * (b.write - b.read) }

// isEven reports whether the rent has reached the price of a compaction, by the estimate that needs
// no plan.
func (b *balance) isEven() bool { return b.rent >= b.price(b.left-b.fixed-b.fresh) }

// breakEvenOccasion returns the occasion of a prompt of size tokens below its target by the rule of
// rent or buy. On a cold cache the whole prompt is written in any case, so that a shorter one costs
// less at once.
func breakEvenOccasion(exchange *pipeline.View, size int) occasion {
	if size <= configOf(exchange).MinContext {
		return noOccasion
	}
	b := weigh(exchange, size)
	switch {
	case b.size-b.left < float64(leastFreed(exchange, size)):
		return noOccasion
	case isFree(exchange):
		return idle
	case b.isEven():
		return brokeEven
	}
	return noOccasion
}

// hasBrokenEven reports whether the rent has reached the price of an epoch as it was
// planned.
func hasBrokenEven(exchange *pipeline.View, epoch *epoch) bool {
	b := weigh(exchange, epoch.projection.Before)
	b.left, b.requests, b.rent = float64(epoch.projection.After), 0, 0
	b.add(exchange)
	if exchange.Model.Price.Input > 0 {
		epoch.prediction.rent = int64(b.rent)
	}
	return b.rent >= b.price(float64(epoch.prediction.rewritten))
}

// leastFreed returns how many tokens an epoch of a prompt of size tokens must free: minClear of the
// window or, by the rule of rent or buy, of the prompt if that is smaller.
func leastFreed(exchange *pipeline.View, size int) int {
	whole := exchange.Limits.Limit
	if byBreakEven(exchange) {
		whole = min(whole, size)
	}
	return int(configOf(exchange).MinClear * float64(whole))
}

func tokensOf(digests []conversation.Digest) int {
	sum := 0
	for i := range digests {
		sum += digests[i].Tokens
	}
	return sum
}
