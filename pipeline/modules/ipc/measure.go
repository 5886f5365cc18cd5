package ipc

import (
	"math"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
)

// budget holds how large a prompt is and how large it may become. Sizes are o200k tokens; rate is
// how many of the model's own tokens make one of them.
type budget struct {
	rate  float64
	now   int // current size of the prompt
	fixed int // the part before the conversation, never shortened
	goal  int // the size that the epoch compresses down to
	high  int // the target: above it there is an epoch
	limit int // the largest prompt allowed
	worth int // the minimum that an epoch must free

	isLong bool // the prompt exceeds its target
}

// measure returns the budget of a prompt of size tokens of the model. It reads no message.
func measure(exchange *pipeline.View, size int) *budget {
	config := configOf(exchange)
	b := &budget{now: max(1, exchange.Estimate(exchange.Lane.Projection))}
	// The reported size of this prompt may be more precise than the model's average.
	b.rate = max(exchange.Limits.Factor, float64(size)/float64(b.now))
	limit := float64(exchange.Limits.Limit) / b.rate
	if exchange.Limits.Limit == 0 {
		limit = math.MaxInt32 // only its bytes can be too many
	}
	b.limit, b.high = int(limit), int(config.TargetUtilization*limit)
	fixed := min(limit, float64(exchange.Limits.Fixed+tokensOf(exchange.Conversation.Digests[:conversation.Lead(exchange.Conversation.Digests)])))
	b.fixed = int(fixed)
	b.goal, b.worth = int(config.Goal(limit, fixed, float64(config.PreserveTokens)/b.rate)), int(config.MinClear*max(limit-fixed, limit/2))
	if byBreakEven(exchange) {
		b.goal = min(b.goal, int(weigh(exchange, size).goal/b.rate))
		b.worth = int(config.MinClear * float64(min(b.limit, b.now)))
	}
	if exchange.Lane.Order != nil {
		b.goal, b.worth = min(b.goal, b.now/2), 1
	}
	b.isLong = exchange.Limits.Limit > 0 && (float64(size) > config.TargetUtilization*float64(exchange.Limits.Limit) || !isHeavy(exchange))
	return b
}

// lower returns a budget for a prompt limited to so many tokens, with half of them as the goal.
func (b *budget) lower(tokens float64) {
	b.goal, b.high = min(b.goal, int(tokens/2)), min(b.high, int(tokens))
}

// tokens returns a size in the model's tokens.
func (b *budget) tokens(size int) int { return int(math.Ceil(float64(size) * b.rate)) }
