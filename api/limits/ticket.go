package limits

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Ticket is a request that was let begin. Its zero value, and nil, stand for one
// that nothing is counted of. One goroutine at a time uses it.
type Ticket struct {
	limiter *Limiter // nil if nothing is counted, or it is settled
	subject Subject
	quota   tenants.Quota
	id      uuid.UUID
	at      time.Time // when it began
	taken   int       // tokens
	held    int64     // millionths of a dollar of its budgets, while it is under way
	left    Remaining
}

// Quota returns what the request is held to.
func (t *Ticket) Quota() tenants.Quota {
	if t == nil {
		return tenants.Quota{}
	}
	return t.quota
}

// Left returns what was left of the limits when the ticket was last counted.
func (t *Ticket) Left() Remaining {
	if t == nil {
		return Remaining{}
	}
	return t.left
}

// Take counts the tokens that are about to be sent, and holds what they and their
// answer cost at most, in millionths of a dollar, until the request is settled. It
// returns an Exceeded if they are too many, or if what others under way hold leaves
// nothing of a budget: so of all that are let pass only the last can exceed it. It is
// called once.
func (t *Ticket) Take(ctx context.Context, tokens int, micro int64) error {
	if t == nil || t.limiter == nil {
		return nil
	}
	if t.quota.TokensPerMinute == 0 {
		tokens = 0
	}
	if !t.quota.HasBudget() {
		micro = 0
	}
	if tokens <= 0 && micro <= 0 {
		return nil
	}
	if tokens > t.quota.TokensPerMinute {
		return Exceeded{Kind: Tokens, Quota: t.quota, Asked: tokens}
	}
	return t.take(ctx, max(0, tokens), max(0, micro))
}

func (t *Ticket) take(ctx context.Context, tokens int, micro int64) error {
	now := t.limiter.config.Now()
	known, _ := t.limiter.local.spent(t.subject, t.quota, now)
	var result verdict
	isShared := t.limiter.ask(ctx, func(ctx context.Context) (err error) {
		result, err = t.limiter.shared.take(ctx, t, tokens, micro, known)
		return err
	})
	switch {
	case !isShared:
		result = t.limiter.local.take(t.subject, t.quota, now, tokens, micro)
	case result.kind == None:
		t.limiter.local.owe(t.subject, t.quota, now, tokens, micro)
	}
	t.left.Tokens = result.left.Tokens
	if result.kind != None {
		return Exceeded{Kind: result.kind, Quota: t.quota, Wait: result.wait}
	}
	t.taken += tokens
	t.held = micro
	if isShared {
		t.limiter.hold(t, micro)
	}
	return nil
}

// Settle ends the request: the tokens that were sent and answered in all, as far as
// they are known, and what it has cost in millionths of a dollar. What was taken too
// much is given back. A second call changes nothing.
func (t *Ticket) Settle(ctx context.Context, tokens int, micro int64) {
	if t == nil || t.limiter == nil {
		return
	}
	limiter := t.limiter
	t.limiter = nil
	limiter.letGo(t)
	before, _ := limiter.local.spent(t.subject, t.quota, limiter.config.Now())
	var known *spend
	limiter.ask(ctx, func(ctx context.Context) error {
		sums, err := limiter.shared.settle(ctx, t, tokens-t.taken, micro, before)
		if err == nil {
			known = &sums
		}
		return err
	})
	limiter.local.settle(t, limiter.config.Now(), tokens-t.taken, micro, known)
}
