package limits

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Ticket is an admitted request. Its zero value, and nil, are requests that are not counted. Only one
// goroutine at a time may use it.
type Ticket struct {
	limiter *Limiter // nil if nothing is counted, or after Settle
	held    []Held   // subjects whose limits apply; the narrowest first
	id      uuid.UUID
	at      time.Time // when it began
	claim   claim     // taken amounts
	shared  bool      // its holds are in Redis
	left    []Remaining
	also    *Ticket // optional: the ticket of further limits
}

// Quota returns the quota of the request's API key.
func (t *Ticket) Quota() tenants.Quota {
	if t == nil || len(t.held) == 0 || t.held[0].Subject.Kind != tenants.KeySpends {
		return tenants.Quota{}
	}
	return t.held[0].Quota
}

// Left returns the rest of the limits of the request's API key when the ticket was last counted.
func (t *Ticket) Left() Remaining {
	if t == nil || len(t.left) == 0 || t.held[0].Subject.Kind != tenants.KeySpends {
		return Remaining{}
	}
	return t.left[0]
}

// Held returns the subjects whose limits apply to the request.
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

// Take counts the tokens of a prompt before it is sent, and the maximum of its answers, and holds the maximum
// cost, in millionths of a dollar, until the request is settled. It returns an Exceeded if the prompt is too
// long, or if the holds of other requests leave nothing of a budget. Therefore only the last admitted request
// can exceed the budget, or the limit on tokens by its answers. Call it once.
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

// exceeded returns the error for an exceeded limit.
func (v verdict) exceeded(held []Held) Exceeded {
	return Exceeded{Kind: v.kind, Subject: held[v.of].Subject, Quota: held[v.of].Quota, Wait: v.wait}
}

// Places returns the request's places in Redis. Limiter.Release frees them if another process has counted the
// request's cost.
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

// Settle ends the request with its total tokens, if known, and its cost in millionths of a dollar. It gives
// back the excess of Take. A second call changes nothing.
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
