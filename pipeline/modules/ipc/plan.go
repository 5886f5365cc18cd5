package ipc

import (
	"context"
	"errors"
	"math"

	"palimpsest/pipeline"
	"palimpsest/pipeline/certificate"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// errNothingToFree means that no epoch would free enough to be worth its price.
var errNothingToFree = errors.New("nothing to free")

// errWorse means that the rendered prompt is no smaller than the one it replaces.
var errWorse = errors.New("result is not smaller")

// planner joins the parts that plan one epoch of one exchange. Each part has one duty and its own
// file, and uses only the parts above it.
type planner struct {
	budget     *budget     // how large the prompt is, and how large it may become
	history    *history    // its messages by turns, read once: history.go
	protection *protection // its messages that must stay: protect.go
	forms      *forms      // turns rendered at each level: level1.go, record.go, level3.go, media.go
	selection  *selection  // the level of each turn: select.go
	renderer   *renderer   // the projection of a selection: render.go
	tails      *tails      // how many of the newest turns stay as they are: select.go
	descent    *descent    // the steps after all levels: descend.go
}

// plan plans an epoch for a prompt of size tokens of the model. It returns
// errNothingToFree if no epoch is worth making.
func (m *Module) plan(ctx context.Context, exchange *pipeline.View, size int) (*epoch, error) {
	p := newPlanner(exchange, m.count, m.memory, size, byTheRules)
	if !p.mayBeWorth() {
		return nil, errNothingToFree
	}
	projection, err := p.project(ctx)
	if err != nil {
		return nil, err
	}
	for rung := byTheRules + 1; rung <= lastRung && exchange.Estimate(projection) > p.budget.limit; rung++ {
		bolder := newPlanner(exchange, m.count, m.memory, size, rung)
		shorter, err := bolder.project(ctx)
		if err != nil {
			return nil, err
		}
		if exchange.Estimate(shorter) < exchange.Estimate(projection) {
			p, projection = bolder, shorter
		}
	}
	if err := p.judge(projection, size); err != nil {
		return nil, err
	}
	if p, projection, err = m.complete(ctx, p, projection, size); err != nil {
		return nil, err
	}
	after := exchange.Estimate(projection)
	projection.Before, projection.After = size, p.budget.tokens(after)
	epoch := newEpoch(exchange, p.budget, projection, after <= p.budget.high)
	epoch.rung, epoch.unsaid = p.protection.rung, p.renderer.opening.leftOut
	epoch.dropped, epoch.droppedFrom, epoch.droppedTo = p.descent.left()
	return epoch, nil
}

// project is the algorithm: it returns the projection of the best plan by the rules of its rung.
func (p *planner) project(ctx context.Context) (*session.Projection, error) {
	// Protect: messages that stay although their turns are folded.
	if err := p.protection.hold(); err != nil {
		return nil, err
	}
	// Take over: the model's summary, and media that are out already.
	if err := p.useSummary(ctx); err != nil {
		return nil, err
	}
	if err := p.forms.media.keepEvicted(); err != nil {
		return nil, err
	}
	// Select and render: the levels bring the prompt to its goal, and chunks cut it further if it
	// is still above its target.
	projection, err := p.shorten(ctx)
	if err != nil || !isHeavy(p.history.exchange) {
		return projection, err
	}
	// Lighten: remove media if the body has too many bytes.
	return p.lighten(ctx, projection)
}

// shorten plans for the prompt's tokens. If they are not too many, it leaves every turn at its
// level.
func (p *planner) shorten(ctx context.Context) (*session.Projection, error) {
	if !p.budget.isLong {
		if err := p.selection.reset(); err != nil {
			return nil, err
		}
		return p.renderer.render()
	}
	projection, err := p.tails.search(ctx)
	if err != nil {
		return nil, err
	}
	return p.descent.descend(projection)
}

// newPlanner puts the parts together. It reads no message.
func newPlanner(exchange *pipeline.View, count func(conversation.Message) int, memory *memory, size int, rung rung) *planner {
	return newPlannerFor(measure(exchange, size), exchange, count, memory, rung)
}

// newPlannerFor is newPlanner for a budget.
func newPlannerFor(budget *budget, exchange *pipeline.View, count func(conversation.Message) int, memory *memory, rung rung) *planner {
	history := newHistory(exchange, count, memory)
	protection := protect(history, budget, rung)
	forms := newForms(history, protection)
	lines := newLines(history, budget)
	opening := &opening{history: history, budget: budget, records: forms.records, blocks: map[[2]int]ledgerBlock{}, known: map[[2]int]*certificate.Originals{}}
	selection := &selection{history: history, forms: forms, lines: lines, opening: opening, room: budget.goal - budget.fixed}
	renderer := &renderer{history: history, protection: protection, forms: forms, lines: lines, opening: opening}
	return &planner{
		budget: budget, history: history, protection: protection, forms: forms, selection: selection, renderer: renderer,
		tails:   &tails{history: history, budget: budget, selection: selection, renderer: renderer},
		descent: &descent{history: history, budget: budget, forms: forms, lines: lines, renderer: renderer, results: map[int]bool{}},
	}
}

// mayBeWorth reports whether an epoch can free enough to be worth making, or must be tried, without
// reading a message.
func (p *planner) mayBeWorth() bool {
	return p.potential() >= p.budget.worth || p.budget.now > p.budget.limit || isHeavy(p.history.exchange) && p.mayLighten()
}

// potential returns an upper bound of the tokens that an epoch can free, without reading a message.
func (p *planner) potential() int {
	covered, potential := p.history.covered(), 0
	if projection := p.history.exchange.Lane.Projection; projection != nil {
		for _, part := range projection.Parts {
			if part.Level < p.history.config.DeepestLevel {
				potential += p.history.weigh(part)
			}
		}
	}
	for i, t := range p.history.turns {
		switch {
		case t.To > covered && !t.isFixed && i < len(p.history.turns)-1:
			potential += t.original - t.front
		case t.To <= covered && t.floor < p.history.config.DeepestLevel:
			potential -= t.front // it stays as it is at any level
		}
	}
	return potential + p.history.olderGroups()
}

// judge returns why an epoch to a projection is not worth making; nil if it is.
func (p *planner) judge(projection *session.Projection, size int) error {
	exchange, b := p.history.exchange, p.budget
	heavy, after := isHeavy(exchange), exchange.Estimate(projection) // after is in o200k tokens, like the budget
	switch {
	case projection.Covers == 0, heavy && !b.isLong && after == b.now:
		return errNothingToFree
	case after >= b.now, b.tokens(after) >= min(size, exchange.Original()):
		return errWorse
	case heavy && p.isLighter(projection):
		return nil
	case b.now-after < b.worth && (b.now <= b.limit || after > b.limit):
		return errNothingToFree
	}
	return nil
}

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
