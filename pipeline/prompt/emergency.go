package prompt

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// unsaidMargin is by how much the size of a prompt or a body is taken to exceed a
// limit that the provider says it exceeds, without saying by how much.
const unsaidMargin = 1.02

// smallestWindow is what a model's window is taken for that nobody knows, in tokens.
const smallestWindow = 8 << 10

// MayBeTooLong reports whether the provider may find a prompt too long though it
// should fit, and another can be written then: sizes are estimates, and a provider's
// window may be smaller than its model's.
func (p *Prompt) MayBeTooLong() bool {
	exchange := p.Exchange
	limit := cmp.Or(exchange.Limit, smallestWindow)
	return p.Lane != nil && mayChange(exchange) && 2*exchange.Report.After > limit
}

// Shrink writes a prompt again that the provider has found too long: with a
// projection that is strictly smaller, made for the window and the size that the
// provider named; where that is not enough, without what modules have put into it. ok is false if no smaller prompt is possible, or if the prompt must not be
// edited. The same prompt and the same words give the same result. It must be
// called before the body that the prompt was written from is let go.
func (w *Writer) Shrink(ctx context.Context, refused *Prompt, said wire.Overflow) (shrunk *Prompt, ok bool) {
	defer func() {
		if recover() != nil { // the provider's own refusal goes back
			shrunk, ok = nil, false
		}
	}()
	exchange := *refused.Exchange
	if refused.Lane == nil || !mayChange(&exchange) {
		return nil, false
	}
	sent := exchange.Estimate(exchange.Projection) // o200k tokens
	if said.IsHeavy {
		exchange.MaxBytes = int(float64(len(refused.Body)) / unsaidMargin)
	} else {
		w.correct(&exchange, said, sent)
	}
	shrunk = &Prompt{
		Exchange: &exchange, Lane: refused.Lane, now: refused.now, plansAhead: refused.plansAhead,
		earlier: earlier{met: refused.earlier.met, heat: refused.earlier.heat},
	}

	asking, cancel := context.WithTimeout(ctx, resolveTimeout)
	err := shrunk.Lane.Lock(asking)
	cancel()
	if err != nil {
		return nil, false
	}
	defer shrunk.Lane.Unlock()
	exchange.Finalized = true
	exchange.Anchor = session.Anchor{} // it had said that the prompt fits
	exchange.NextProjection = shrunk.Lane.NextNumber()
	exchange.Attempts, exchange.Plan = session.Attempts{}, nil // the provider's word is newer
	exchange.Projection = shrunk.Lane.Projection(exchange.Chain)
	exchange.Summary = shrunk.Lane.Summary(exchange.Chain)
	exchange.Committer = committer{writer: w, prompt: shrunk}
	w.process(ctx, &exchange)
	w.warn(shrunk)
	injectedBy(&exchange.Report, refused.Exchange.Report)
	if !said.IsHeavy && !isShrunk(&exchange, sent) && w.withdraw(ctx, shrunk, refused.fresh) {
		exchange.Report.Injected = nil
	}
	if !said.IsHeavy && !isShrunk(&exchange, sent) {
		return nil, false
	}
	shrunk.seal(refused.AsksUsage, nil)
	if len(shrunk.Body) >= len(refused.Body) || exchange.MaxBytes > 0 && len(shrunk.Body) > exchange.MaxBytes {
		return nil, false
	}
	shrunk.Archiving += refused.Archiving
	exchange.Report = emergency(refused.Exchange.Report, exchange.Report, said)
	shrunk.account = w.account(shrunk)
	return shrunk, true
}

// mayChange reports whether a prompt may get another form than the one that it has.
func mayChange(exchange *pipeline.Exchange) bool {
	return exchange.Request.ReadOnly == "" && !exchange.Request.Repeats
}

// isShrunk reports whether an exchange's prompt is smaller than what was sent, so
// many o200k tokens, and within its limit.
func isShrunk(exchange *pipeline.Exchange, sent int) bool {
	return exchange.Estimate(exchange.Projection) < sent && exchange.Size(exchange.Projection) <= exchange.Limit
}

// Overflowed learns from an answer that turned out to be the refusal of a prompt
// that is too long, when its beginning had gone out already: the next prompt of the
// lane is taken to be as long.
func (w *Writer) Overflowed(sent Sent) {
	if sent.Lane == nil || sent.limit == 0 {
		return
	}
	anchor := sent.size.anchor
	anchor.Tokens = int(float64(sent.limit) * unsaidMargin)
	sent.Lane.Reported(anchor)
}

// correct has an exchange go by what the provider said of its prompt, which has so
// many o200k tokens.
func (w *Writer) correct(exchange *pipeline.Exchange, said wire.Overflow, sent int) {
	if said.Window > 0 {
		exchange.Model = exchange.Model.WithWindow(said.Window)
		exchange.Limit = said.Limit() // without the answer's room, unless the provider counts it
	}
	if said.Tokens > 0 && sent > 0 {
		exchange.Factor = max(exchange.Factor, float64(said.Tokens)/float64(sent))
		w.Calibration.Observe(exchange.Scope.Workspace, exchange.Model, sent, said.Tokens)
	}
	// By whatever it was counted, the prompt was larger than the window.
	within := int(float64(sent) * exchange.Factor / unsaidMargin)
	if exchange.Limit == 0 || exchange.Limit > within {
		exchange.Limit = within
	}
	exchange.Takes = exchange.Limit
}

// emergency returns the report of a prompt that was made smaller after the
// provider had refused it.
func emergency(refused, shrunk pipeline.Report, said wire.Overflow) pipeline.Report {
	refusal := pipeline.ReportEntry{Module: "provider", Type: "overflow", Reason: map[bool]string{true: "bytes"}[said.IsHeavy], Counts: map[string]int{"tokens": said.Tokens, "window": said.Window}}
	maps.DeleteFunc(refusal.Counts, func(_ string, count int) bool { return count == 0 })
	events := slices.Clone(refused.Events)
	shrunk.Events = append(append(events, refusal), shrunk.Events...)
	shrunk.Compression = pipeline.Emergency
	return shrunk
}
