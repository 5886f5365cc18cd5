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
	limiter *Limiter // nil: nothing is counted, or it is settled
	subject Subject
	quota   tenants.Quota
	id      uuid.UUID
	at      time.Time // when it began
	taken   int       // tokens
	left    Left
}

// Quota returns what the request is held to.
func (t *Ticket) Quota() tenants.Quota {
	if t == nil {
		return tenants.Quota{}
	}
	return t.quota
}

// Left returns what was left of the limits when the ticket was last counted.
func (t *Ticket) Left() Left {
	if t == nil {
		return Left{}
	}
	return t.left
}

// Take counts the tokens that are about to be sent, or returns an Exceeded.
func (t *Ticket) Take(ctx context.Context, tokens int) error {
	if t == nil || t.limiter == nil || t.quota.TokensPerMinute == 0 || tokens <= 0 {
		return nil
	}
	exceeded := Exceeded{Kind: Tokens, Quota: t.quota}
	if tokens > t.quota.TokensPerMinute {
		exceeded.Asked = tokens
		return exceeded
	}
	now := t.limiter.config.Now()
	isShared := t.limiter.ask(ctx, func(ctx context.Context) (err error) {
		exceeded.Wait, t.left.Tokens, err = t.limiter.shared.take(ctx, t, tokens)
		return err
	})
	switch {
	case !isShared:
		exceeded.Wait, t.left.Tokens = t.limiter.local.take(t.subject, t.quota, now, tokens)
	case exceeded.Wait == 0:
		t.limiter.local.owe(t.subject, t.quota, now, tokens)
	}
	if exceeded.Wait > 0 {
		return exceeded
	}
	t.taken += tokens
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
