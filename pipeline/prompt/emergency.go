package prompt

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// unsaidMargin is the assumed ratio of a prompt's or a body's size to its limit if the provider reports an
// overflow without its amount.
const unsaidMargin = 1.02

// smallestWindow is the assumed window, in tokens, of a model whose window is unknown.
const smallestWindow = 8 << 10

// MayBeTooLong reports whether the provider may find a prompt too long although it should fit, and a smaller
// one can be written then. Sizes are estimates, and a provider's window may be smaller than its model's.
func (p *Prompt) MayBeTooLong() bool {
	exchange := p.Exchange
	limit := cmp.Or(exchange.Limits.Limit, smallestWindow)
	return p.Lane != nil && mayChange(&exchange.Request) && 2*exchange.Report.After > limit
}

// Lesson is a model window learned from an answer. It is zero if there's nothing new.
type Lesson struct {
	Model  string
	Window int
}

const (
	// leastWindow is the smallest plausible window, in tokens.
	leastWindow = 1 << 10

	// mostOver is the largest ratio of a prompt to its window for which the window is believed.
	mostOver = 64
)

// lesson returns the window that the refusal of a prompt of size tokens teaches. If the provider names no
// window and the model is unknown, the window is assumed to be slightly smaller than the prompt.
func lesson(model tokens.Model, size int, said wire.Overflow) Lesson {
	window := said.Window
	if window == 0 && !said.IsHeavy && model.Family == "" {
		window = int(float64(max(size, said.Tokens)) / unsaidMargin)
	}
	if window < max(leastWindow, size/mostOver) || model.Known && window >= model.Window {
		return Lesson{}
	}
	return Lesson{Model: model.Name, Window: window}
}

// Teaches returns the window that the refusal of the prompt teaches.
func (p *Prompt) Teaches(said wire.Overflow) Lesson {
	return lesson(p.Exchange.Model, p.Exchange.Report.After, said)
}

// Teaches is Prompt.Teaches for a prompt that has been sent. overflows is false if the answer doesn't say
// that the prompt is too long.
func (s *Sent) Teaches(answer wire.Answer) (taught Lesson, overflows bool) {
	said, overflows := answer.Overflow(s.most)
	if !overflows || answer.Error == nil && !s.isNear {
		return Lesson{}, false
	}
	return lesson(s.size.model, s.account.exchange.After, said), true
}

// Price returns the price of a usage in millionths of a US dollar, in addition to the prompt's answer.
func (p *Prompt) Price(usage wire.Usage) int64 {
	return p.account.exchange.Price.MicroUSD(usage.Input, usage.CacheRead, usage.CacheWrite-usage.CacheWrite1h, usage.CacheWrite1h, usage.Output)
}

// Shrink writes a smaller prompt after the provider found one too long: with a strictly smaller projection
// for the window and size that the provider named, and if that is not enough, without its new inserts. ok
// is false if no smaller prompt is possible or the prompt is read-only. The same prompt and the same refusal
// give the same result. Call it before the body of the prompt is released.
func (w *Writer) Shrink(ctx context.Context, refused *Prompt, said wire.Overflow) (shrunk *Prompt, ok bool) {
	defer func() {
		if recover() != nil { // the provider's own refusal goes back
			shrunk, ok = nil, false
		}
	}()
	exchange := *refused.Exchange
	if refused.Lane == nil || !mayChange(&exchange.Request) {
		return nil, false
	}
	sent := exchange.Estimate(exchange.Lane.Projection) // o200k tokens
	if said.IsHeavy {
		exchange.Limits.MaxBytes = int(float64(len(refused.Body)) / unsaidMargin)
	} else {
		w.correct(&exchange, said, sent)
	}
	exchange.Lane.Finalized = true
	exchange.Lane.Anchor = session.Anchor{}                              // it predicted that the prompt fits
	exchange.Lane.Attempts, exchange.Lane.Plan = session.Attempts{}, nil // the provider's refusal is newer
	lane := refused.Lane
	asking, cancel := context.WithTimeout(ctx, resolveTimeout)
	err := lane.Lock(asking)
	cancel()
	for restarts := 0; err == nil; restarts++ {
		shrunk, isBehind := w.shrink(ctx, exchange, lane, refused, said)
		if !isBehind || restarts == mostRestarts {
			return shrunk, shrunk != nil
		}
		lane, _, err = w.find(ctx, &exchange, refused.hint)
	}
	return nil, false
}

// shrink is Shrink for a lane that the caller has locked, which it unlocks. It returns nil if no smaller prompt
// is possible. isBehind says that another process was first to compact the lane.
func (w *Writer) shrink(ctx context.Context, exchange pipeline.Exchange, lane *session.Lane, refused *Prompt, said wire.Overflow) (shrunk *Prompt, isBehind bool) {
	defer lane.Unlock()
	shrunk = &Prompt{
		Exchange: &exchange, Lane: lane, now: refused.now, plansAhead: refused.plansAhead, account: refused.account,
		earlier: earlier{met: refused.earlier.met, heat: refused.earlier.heat}, hint: refused.hint,
	}
	sent := refused.Exchange.Estimate(refused.Exchange.Lane.Projection) // o200k tokens
	exchange.Lane.NextProjection = lane.NextNumber()
	exchange.Lane.Projection = lane.Projection(exchange.Conversation.Chain)
	exchange.Lane.Summary = lane.Summary(exchange.Conversation.Chain)
	exchange.Committer = committer{writer: w, prompt: shrunk}
	process(ctx, w.Chain, &exchange)
	if shrunk.earlier.isBehind {
		return nil, true
	}
	w.warn(shrunk)
	injectedBy(&exchange.Report, refused.Exchange.Report)
	if !said.IsHeavy && !isShrunk(&exchange, sent) && w.withdraw(ctx, shrunk, refused.fresh) {
		exchange.Report.Injected = nil
	}
	if !said.IsHeavy && !isShrunk(&exchange, sent) {
		return nil, false
	}
	shrunk.seal(refused.AsksUsage, nil)
	if len(shrunk.Body) >= len(refused.Body) || exchange.Limits.MaxBytes > 0 && len(shrunk.Body) > exchange.Limits.MaxBytes {
		return nil, false
	}
	shrunk.Archiving += refused.Archiving
	exchange.Report = emergency(refused.Exchange.Report, exchange.Report, said)
	shrunk.account = w.account(shrunk)
	return shrunk, false
}

// WithoutUsage writes the prompt again without the request for a usage report that the client did not ask
// for.
func (p *Prompt) WithoutUsage() {
	p.AsksUsage = false
	p.seal(false, nil)
}

// mayChange reports whether a prompt may be written in another form.
func mayChange(request *wire.Request) bool {
	return request.ReadOnly == "" && !request.Repeats
}

// isShrunk reports whether an exchange's prompt is smaller than the sent number of o200k tokens and within
// its limit.
func isShrunk(exchange *pipeline.Exchange, sent int) bool {
	return exchange.Estimate(exchange.Lane.Projection) < sent && exchange.Size(exchange.Lane.Projection) <= exchange.Limits.Limit
}

// Overflowed learns from a refusal for length recognized only after the beginning of the answer had
// been passed on. The lane's next prompt is assumed to be as long.
func (w *Writer) Overflowed(sent Sent) {
	if sent.Lane == nil || sent.limit == 0 {
		return
	}
	anchor := sent.size.anchor
	anchor.Tokens = int(float64(sent.limit) * unsaidMargin)
	sent.Lane.Reported(anchor)
}

// correct applies the provider's refusal to an exchange whose prompt has sent o200k tokens.
func (w *Writer) correct(exchange *pipeline.Exchange, said wire.Overflow, sent int) {
	if said.Window > 0 {
		exchange.Model = exchange.Model.WithWindow(said.Window)
		own := pipeline.SettingsOf[ipc.Config](exchange.Config).ContextWindow.Tokens()
		exchange.Limits.Limit = within(said.Limit(), own) // without the answer's room, unless the provider counts it
	}
	if said.Tokens > 0 && sent > 0 {
		exchange.Limits.Factor = max(exchange.Limits.Factor, float64(said.Tokens)/float64(sent))
		w.Calibration.Observe(exchange.Scope.Workspace, exchange.Model, sent, said.Tokens)
	}
	// However it was counted, the prompt was larger than the window.
	exchange.Limits.Limit = within(exchange.Limits.Limit, int(float64(sent)*exchange.Limits.Factor/unsaidMargin))
	exchange.Limits.Takes = exchange.Limits.Limit
}

// emergency returns the report of a prompt shrunk after a refusal.
func emergency(refused, shrunk pipeline.Report, said wire.Overflow) pipeline.Report {
	refusal := pipeline.ReportEntry{Module: "provider", Type: "overflow", Reason: map[bool]string{true: "bytes"}[said.IsHeavy], Counts: map[string]int{"tokens": said.Tokens, "window": said.Window}}
	maps.DeleteFunc(refusal.Counts, func(_ string, count int) bool { return count == 0 })
	events := slices.Clone(refused.Events)
	shrunk.Events = append(append(events, refusal), shrunk.Events...)
	shrunk.Compression = pipeline.Emergency
	return shrunk
}

// Standing is the prompt that would have gone out without a new epoch. Since it extends the previous request,
// the provider may have that part cached.
type Standing struct {
	Body   []byte
	Beta   string // addition to the client's anthropic-beta header; "" if absent
	Tokens int    // estimate, in the model's tokens
}

// Standing returns the prompt as it was before the modules worked on it. Its body may share the client's
// memory, so call it before that memory is released.
func (p *Prompt) Standing() Standing {
	exchange := *p.Exchange
	exchange.Lane.Projection = p.earlier.standing
	stood := &Prompt{Exchange: &exchange, earlier: earlier{omits: p.earlier.omits, isLost: p.earlier.isLost}}
	stood.seal(p.AsksUsage, nil)
	return Standing{Body: stood.Body, Beta: stood.Beta, Tokens: exchange.Size(p.earlier.standing)}
}

// warn adds the warnings of a prompt's lane to its report. A warning is repeated in every report for as long
// as it applies. Its event is from the exchange in which the problem arose; for a loss, from the first one
// that detects it.
func (w *Writer) warn(prompt *Prompt) {
	exchange, lane := prompt.Exchange, prompt.Lane
	if lane == nil || exchange.Lane.Projection == nil {
		return
	}
	report := &exchange.Report
	epochs, isEpoch := exchange.Lane.Projection.Number, report.Archived > 0
	say := func(warning, reason string, isNew bool, counts map[string]int) {
		report.Warnings = append(report.Warnings, warning)
		if isNew {
			report.Events = append(report.Events, pipeline.ReportEntry{Module: ipc.Name, Type: "warning", Reason: reason, Counts: counts})
		}
	}
	if after := pipeline.SettingsOf[ipc.Config](exchange.Config).WarnsAfter(); after > 0 && epochs >= after {
		say(cost.NoticeEpochs+"="+strconv.Itoa(epochs), cost.NoticeEpochs, isEpoch, map[string]int{"epochs": epochs})
	}
	if isTruncated(report) {
		w.Tracker.Truncated(lane.ID, epochs)
	}
	balance := w.Tracker.Balance(lane.ID)
	if balance.Truncated == epochs {
		say(cost.NoticeTruncated, cost.NoticeTruncated, isEpoch, nil)
	}
	isLoss := balance.IsLoss()
	if isNew := w.Tracker.Warned(lane.ID, isLoss); isLoss {
		say(cost.NoticeLoss, cost.NoticeLoss, isNew, map[string]int{"net_microusd": int(balance.Net)})
	}
}

// isTruncated reports whether an epoch has just truncated the prompt.
func isTruncated(report *pipeline.Report) bool {
	for _, event := range report.Events {
		if event.Type == "truncated" {
			return true
		}
	}
	return false
}
