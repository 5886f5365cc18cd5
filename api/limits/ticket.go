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
	held    []Held   // by whose limits; the narrowest first
	id      uuid.UUID
	at      time.Time // when it began
	claim   claim     // what it has taken
	shared  bool      // Redis knows what it holds
	left    []Remaining
	also    *Ticket // by whose limits it is held besides; optional
}

// Quota returns what the request's API key is held to.
func (t *Ticket) Quota() tenants.Quota {
	if t == nil || len(t.held) == 0 || t.held[0].Subject.Kind != tenants.KeySpends {
		return tenants.Quota{}
	}
	return t.held[0].Quota
}

// Left returns what was left of the limits of the request's API key when the ticket was
// last counted.
func (t *Ticket) Left() Remaining {
	if t == nil || len(t.left) == 0 || t.held[0].Subject.Kind != tenants.KeySpends {
		return Remaining{}
	}
	return t.left[0]
}

// Held returns by whose limits the request is held.
func (t *Ticket) Held() []Held {
	if t == nil {
		return nil
	}
	return t.held
}

// HasBudget reports whether the request holds a part of anyone's budget.
func (t *Ticket) HasBudget() bool {
	return t != nil && (t.claim.micro > 0 && len(Budgets(t.held)) > 0 || t.also.HasBudget())
}

// Take counts the tokens of a prompt that is about to be sent, and those that its answers
// may have, and holds what all of it costs at most, in millionths of a dollar, until the
// request is settled. It returns an Exceeded if the prompt is too long, or if what others
// under way hold leaves nothing of a budget: so of all that are let pass only the last
// can exceed it, or the limit on tokens by its answers. It is called once.
func (t *Ticket) Take(ctx context.Context, prompt, answers int, micro int64) error {
	if t == nil {
		return nil
	}
	if err := t.also.Take(ctx, prompt, answers, micro); err != nil || t.limiter == nil {
		return err
	}
	all := claim{prompt: max(0, prompt), answers: max(0, answers), micro: max(0, micro)}
	isNothing := true
	for _, held := range t.held {
		own := all.of(held.Quota)
		if own.prompt > held.Quota.TokensPerMinute {
			return Exceeded{Kind: Tokens, Subject: held.Subject, Quota: held.Quota, Asked: own.prompt}
		}
		isNothing = isNothing && own == claim{}
	}
	if isNothing {
		return nil
	}
	return t.take(ctx, all)
}

func (t *Ticket) take(ctx context.Context, all claim) error {
	now := t.limiter.config.Now()
	known := t.limiter.local.known(t.held, now)
	var result verdict
	isShared := t.limiter.ask(ctx, func(ctx context.Context) (err error) {
		result, err = t.limiter.shared.take(ctx, t, all, known)
		return err
	})
	switch {
	case !isShared:
		result = t.limiter.local.take(t.held, now, all)
	case result.kind == None:
		t.limiter.local.owe(t.held, now, all)
	}
	for i := range t.left {
		t.left[i].TokensPerMinute = result.left[i].TokensPerMinute
	}
	if result.kind != None {
		return result.exceeded(t.held)
	}
	t.claim, t.shared = all, isShared
	if isShared {
		t.limiter.hold(t)
	}
	return nil
}

// exceeded returns the error for the limit that a request meets.
func (v verdict) exceeded(held []Held) Exceeded {
	return Exceeded{Kind: v.kind, Subject: held[v.of].Subject, Quota: held[v.of].Quota, Wait: v.wait}
}

// Places returns what Redis knows of what the request holds. Limiter.Release lets go of
// it where another process has counted what the request costs.
func (t *Ticket) Places() []string {
	if t == nil {
		return nil
	}
	places := t.also.Places()
	if !t.shared {
		return places
	}
	for _, held := range t.held {
		if held.Quota.HasBudget() {
			places = append(places, namesOf(held.Subject, t.at).held, t.place())
		}
	}
	return places
}

// Settle ends the request: the tokens that were sent and answered in all, as far as
// they are known, and what it has cost in millionths of a dollar. What was taken too
// much is given back. A second call changes nothing.
func (t *Ticket) Settle(ctx context.Context, tokens int, micro int64) {
	if t == nil {
		return
	}
	t.also.Settle(ctx, tokens, micro)
	if t.limiter == nil {
		return
	}
	limiter, more := t.limiter, tokens-t.claim.prompt-t.claim.answers
	t.limiter = nil
	limiter.letGo(t)
	before := limiter.local.known(t.held, limiter.config.Now())
	var known []spend
	limiter.ask(ctx, func(ctx context.Context) (err error) {
		known, err = limiter.shared.settle(ctx, t, more, micro, before)
		return err
	})
	limiter.local.settle(t, limiter.config.Now(), more, micro, known)
}
