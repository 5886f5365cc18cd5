package ipc

import (
	"bytes"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

const (
	// horizon bounds for how many requests a gain is counted, because the length of a session is
	// unknown.
	horizon = 50
	// paceTurns is how many of the newest turns determine how fast a conversation grows.
	paceTurns = 16
)

// prediction is the expected cost and gain of an epoch, in the model's tokens and at the model's
// list price.
//
// Epochs come in cycles: a prompt grows by g tokens a request from the size after an epoch, A, to
// the size of the next one. An epoch writes R tokens to the cache instead of reading them from it,
// at the difference of the two prices, and the later it is made the fewer there are. But every
// request until then reads all tokens that are not yet freed. Acting at S is cheaper over a whole
// cycle than waiting until L, where an epoch is made anyway, if
//
//	R·(write − read)  ≤  (S − A) · read · (L − A)/2g
//
// (L − A)/2g are the requests that count. On a cold cache, an epoch writes no token instead of
// reading it, and the freed tokens are not written either. Without a cache, reading costs as much
// as writing.
type prediction struct {
	freed     int // tokens removed from the prompt
	rewritten int // tokens written to the cache again; 0 on a cold cache
	requests  int // requests for which the gain is counted
	net       int64
	worst     int64   // net if no request follows
	rent      int64   // paid for reading the removed tokens; only by the rule of rent or buy
	once      float64 // gain in this request alone, in millionths of a US dollar or in relative prices
	outlives  bool    // threads of the kind usually end before the epoch has earned its price
	worth     bool
}

// predict returns the expected cost and gain of an epoch.
func predict(exchange *pipeline.View, epoch *epoch) prediction {
	projection := &epoch.projection
	rate := float64(projection.Before) / float64(max(1, exchange.Estimate(exchange.Lane.Projection)))
	scale := func(size int) int { return int(rate * float64(size)) }
	p := prediction{freed: projection.Before - projection.After}
	growth := max(1, scale(pace(&exchange.Conversation)))
	room := int(nearLimit*float64(exchange.Limits.Limit)) - projection.After
	p.requests = room / (2 * growth)
	if byBreakEven(exchange) {
		p.requests = p.freed / growth // until it is as large again
	}
	p.requests = min(max(1, p.requests), horizon)

	read, write := cachePrices(exchange, projection.Before)
	freed, requests := float64(p.freed), float64(p.requests)
	gain, once := freed*read*requests, freed*read
	if isWarm(exchange) {
		p.rewritten = max(0, projection.After-scale(exchange.Limits.Fixed+unchanged(exchange, projection))-scale(fresh(exchange)))
		once -= float64(p.rewritten) * (write - read)
	} else {
		once += freed * (write - read) // the first of the requests writes
	}
	gain += once - freed*read
	p.once = once
	p.outlives = p.outlived(exchange, read)
	p.worth = gain >= 0
	if exchange.Model.Price.Input > 0 {
		p.net, p.worst = int64(gain), int64(once)
	}
	return p
}

// cachePrices returns the prices of reading a token from the cache and writing it in a prompt of
// size tokens, in US dollars per million. If the price is unknown, they have Anthropic's relation
// to each other.
func cachePrices(exchange *pipeline.View, size int) (read, write float64) {
	price := exchange.Model.Price.Of(size)
	if price.Input == 0 {
		price = tokens.Price{Input: 1, CacheRead: 0.1, CacheWrite: 1.25, CacheWrite1h: 2}
	}
	heat := exchange.Lane.Heat
	switch {
	case !heat.At.IsZero() && heat.TTL == 0:
		return price.Input, price.Input
	case heat.TTL > session.ShortTTL:
		return price.CacheRead, price.CacheWrite1h
	}
	return price.CacheRead, price.CacheWrite
}

// pace returns by how many o200k tokens the conversation grows per request: the mean of its newest
// turns, since each request adds one.
func pace(asked *pipeline.Conversation) int {
	turns := asked.Turns
	turns = turns[max(0, len(turns)-paceTurns):]
	if len(turns) == 0 {
		return 0
	}
	sum := 0
	for _, digest := range asked.Digests[turns[0].From:turns[len(turns)-1].To] {
		sum += digest.Tokens
	}
	return sum / len(turns)
}

// fresh returns the o200k tokens that the lane's last prompt did not have.
func fresh(exchange *pipeline.View) int {
	sum := 0
	for _, digest := range exchange.Conversation.Digests[min(exchange.Lane.Heat.Position, len(exchange.Conversation.Digests)):] {
		sum += digest.Tokens
	}
	return sum
}

// unchanged returns the o200k tokens of the leading messages that are the same in the exchange's
// current prompt and in the prompt with another projection.
func unchanged(exchange *pipeline.View, next *session.Projection) int {
	var standing []session.Part
	covers := 0
	if exchange.Lane.Projection != nil {
		standing, covers = exchange.Lane.Projection.Parts, exchange.Lane.Projection.Covers
	}
	same := 0
	for _, part := range next.Parts {
		if part.Raw != nil {
			if len(standing) == 0 || standing[0].From != part.From || standing[0].To != part.To || !bytes.Equal(standing[0].Raw, part.Raw) || standing[0].Raw == nil {
				return same
			}
			same += part.Tokens
			standing = standing[1:]
			continue
		}
		for i := part.From; i < part.To; i++ {
			for len(standing) > 0 && standing[0].To <= i {
				standing = standing[1:]
			}
			if i < covers && (len(standing) == 0 || standing[0].Raw != nil) {
				return same
			}
			same += exchange.Conversation.Digests[i].Tokens
		}
	}
	return same
}

// counts returns the prediction in the form of an event.
func (p prediction) counts() map[string]int {
	return map[string]int{
		"freed": p.freed, "rewritten": p.rewritten, "requests": p.requests, "predicted_net_microusd": int(p.net),
	}
}

const (
	// fewThreads is how many threads of a kind must have ended to predict how long one lives.
	fewThreads = 8
	// longestThreads is how many of the longest count if fewer have come as far as this one.
	// outlivedBy is how many times as long as the longest a thread must be to count as another
	// kind.
	longestThreads = 3
	outlivedBy     = 1.5
)

// endsSoon is the reason for putting off an epoch that the thread would not live long enough to
// earn.
const endsSoon = "ends_soon"

// remaining returns how many more requests to expect after this one, judged by threads of the kind
// that have ended: the mean of the rest of those that came as far. known is false if they can't
// tell.
func remaining(exchange *pipeline.View) (requests float64, known bool) {
	lives, length := exchange.Lane.Lives, len(exchange.Conversation.Digests)
	if len(lives) < fewThreads {
		return 0, false
	}
	if float64(length) > outlivedBy*float64(lives[len(lives)-1]) {
		return 0, false
	}
	from, _ := slices.BinarySearch(lives, length)
	survivors := lives[min(from, len(lives)-longestThreads):]
	rest := 0
	for _, life := range survivors {
		rest += max(0, life-length)
	}
	return float64(rest) / float64(len(survivors)) / stride(exchange.Conversation.Digests), true
}

// stride returns by how many messages the conversation grows per request.
func stride(digests []conversation.Digest) float64 {
	answers := 0
	for i := range digests {
		if digests[i].Role == conversation.Assistant && (i == 0 || digests[i-1].Role != conversation.Assistant) {
			answers++
		}
	}
	return max(1, float64(len(digests))/float64(max(1, answers)))
}

// outlived reports whether an epoch would not earn its price in the requests that are still
// expected. The gain is the savings in this request and the expected ones. It only counts at the
// target: by break-even, the forecast cost more than it saved with real subagents.
func (p prediction) outlived(exchange *pipeline.View, read float64) bool {
	requests, known := remaining(exchange)
	if !known {
		return false
	}
	return p.once+float64(p.freed)*read*min(requests, horizon) < 0
}
