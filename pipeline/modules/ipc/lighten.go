package ipc

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// leastLighter is the divisor of the byte limit that gives the minimum that an epoch for the sake
// of bytes must free.
const leastLighter = 10

// maxBytes returns how many bytes a prompt may have; 0 means no limit.
func maxBytes(exchange *pipeline.View) int {
	most := configOf(exchange).MaxBytes
	if said := exchange.Limits.MaxBytes; said > 0 && (most == 0 || said < most) {
		return said
	}
	return most
}

// isHeavy reports whether a prompt exceeds its byte limit.
func isHeavy(exchange *pipeline.View) bool {
	most := maxBytes(exchange)
	// No part ever grows, so a small enough body needs no sum.
	return most > 0 && exchange.Conversation.BodyLength() > most && exchange.Bytes(exchange.Lane.Projection) > most
}

// fitsWhole reports whether the prompt fits as the client sent it, including the modules' inserts.
func fitsWhole(exchange *pipeline.View) bool {
	most := maxBytes(exchange)
	return exchange.Original()+int(float64(exchange.Inserted(nil))*exchange.Limits.Factor) <= exchange.Limits.Limit && (most == 0 || exchange.Conversation.BodyLength() <= most)
}

// mayLighten reports whether an epoch can free enough bytes, without reading a
// message.
func (p *planner) mayLighten() bool {
	text := float64(p.history.exchange.Bytes(p.history.exchange.Lane.Projection)) * float64(p.potential()) / float64(p.budget.now)
	return p.forms.media.ballast()+int(text) >= maxBytes(p.history.exchange)/leastLighter
}

// lighten brings a plan's prompt under its byte limit. It takes media out, the oldest first, down
// to half of the limit, so that there is room for a while. If media are not the cause, it plans
// again with a lower token budget.
func (p *planner) lighten(ctx context.Context, projection *session.Projection) (*session.Projection, error) {
	most := maxBytes(p.history.exchange)
	projection, err := p.evict(projection, most/2)
	if err != nil {
		return nil, err
	}
	size := p.history.exchange.Bytes(projection)
	if size <= most {
		return projection, nil
	}
	tokens := float64(p.history.exchange.Estimate(projection)) / float64(size)
	p.budget.lower(tokens * float64(most))
	p.descent.restart()
	for _, t := range p.history.turns {
		t.reading = nil // results may have been cut to fit
		t.forgetL1()
	}
	if projection, err = p.tails.search(ctx); err != nil {
		return nil, err
	}
	if projection, err = p.descent.descend(projection); err != nil {
		return nil, err
	}
	return p.evict(projection, most/2)
}

// evict takes media out of a plan, the oldest first, until its prompt has at most
// goal bytes.
func (p *planner) evict(projection *session.Projection, goal int) (*session.Projection, error) {
	size, changed := p.history.exchange.Bytes(projection), false
	for _, t := range p.protection.evictable() {
		if size <= goal {
			break
		}
		saved, err := p.forms.media.evictTurn(t)
		if err != nil {
			return nil, err
		}
		size -= saved
		changed = changed || saved > 0
	}
	if !changed {
		return projection, nil
	}
	return p.renderer.render()
}

// isLighter reports whether a projection frees enough bytes to be worth an epoch.
func (p *planner) isLighter(projection *session.Projection) bool {
	most, size := maxBytes(p.history.exchange), p.history.exchange.Bytes(projection)
	freed := p.history.exchange.Bytes(p.history.exchange.Lane.Projection) - size
	return freed > 0 && (size <= most || freed >= most/leastLighter)
}
