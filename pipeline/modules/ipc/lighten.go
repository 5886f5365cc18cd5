package ipc

import (
	"context"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// leastLighter is the part of the bytes that a prompt may have, as a divisor, that
// an epoch for their sake must free at least.
const leastLighter = 10

// maxBytes returns how many bytes a prompt may have; 0: any number.
func maxBytes(exchange *pipeline.View) int {
	most := configOf(exchange).MaxBytes
	if said := exchange.MaxBytes; said > 0 && (most == 0 || said < most) {
		return said
	}
	return most
}

// isHeavy reports whether a prompt has more bytes than it may have.
func isHeavy(exchange *pipeline.View) bool {
	most := maxBytes(exchange)
	// Nothing ever grows: a body that is small enough needs no adding up.
	return most > 0 && exchange.BodyLength() > most && exchange.Bytes(exchange.Projection) > most
}

// fitsWhole reports whether the prompt fits as the client sent it, with what modules
// have put into it.
func fitsWhole(exchange *pipeline.View) bool {
	most := maxBytes(exchange)
	return exchange.Original()+int(float64(exchange.Inserted(nil))*exchange.Factor) <= exchange.Limit && (most == 0 || exchange.BodyLength() <= most)
}

// mayLighten reports whether an epoch can free enough bytes, without reading a
// message.
func (p *planner) mayLighten() bool {
	text := float64(p.history.exchange.Bytes(p.history.exchange.Projection)) * float64(p.potential()) / float64(p.budget.now)
	return p.forms.media.ballast()+int(text) >= maxBytes(p.history.exchange)/leastLighter
}

// lighten brings a plan's prompt under its bytes: it takes media out, the oldest
// first, until half of what is allowed is left, so that there is room for a while.
// Where media are not what weighs, it plans again for as much fewer tokens.
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
	freed := p.history.exchange.Bytes(p.history.exchange.Projection) - size
	return freed > 0 && (size <= most || freed >= most/leastLighter)
}
