package ipc

import (
	"context"
	"errors"
	"math"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// errNothingToFree says that no epoch would free enough to be worth its price.
var errNothingToFree = errors.New("nothing to free")

// errWorse says that the rendered prompt is no smaller than the one it replaces.
var errWorse = errors.New("result is not smaller")

// planner plans one epoch of one exchange. Sizes are o200k tokens, limits the
// model's own; rate is how many of the latter make one of the former.
type planner struct {
	exchange *pipeline.Exchange
	config   Config
	counter  Counter

	rate  float64
	now   int // size of the prompt as it stands
	goal  int // what the epoch compresses down to
	high  int // the target: above it there is an epoch
	limit int // what the prompt may have at most

	isLong      bool // it exceeds its target
	latest      int  // the message that a person typed last; -1: none
	attached    int  // and attached something to last; -1: none
	blockTokens int  // bound of all L3 text
	truncation  truncation

	added  map[int]int // o200k tokens of the inserts at messages
	memory memory      // nil if nothing is remembered
	turns  []*turn
	uses   *uses  // nil: not made yet
	stale  []bool // turns whose results say nothing any more; nil: not looked for yet

	rung  rung           // which rules for cost and form it may break
	fates map[int]fate   // what becomes of messages that are bound by more than their turn
	loads map[string]int // the last message that makes a tool known

	loop  int         // the turn that opens a tool loop that must open with thinking; -1
	lines map[int]int // size of the L3 line of each block of blockTurns
	total int         // size of the prompt as planned, but for the frames of records

	made    map[[2]int]lineOf   // L3 lines by the messages they stand for
	ledgers map[int]ledgerBlock // blocks of the ledger by how many turns they cover
	ledger  string              // what the record that opens the projection still has to say
	unsaid  int                 // typed directives that the ledger has no room for

	archive archive.Name // of the history that the projection stands for
	isNamed bool         // the projection says so already

	summary *written // what a model wrote in place of the first turns; nil if none
}

// plan plans an epoch for a prompt of size tokens of the model. It returns
// errNothingToFree if no epoch is worth making.
func (m *Module) plan(ctx context.Context, exchange *pipeline.Exchange, size int) (*epoch, error) {
	p := newPlanner(exchange, m.counter, size, byTheRules)
	p.memory = m.memory
	worth := p.worth()
	heavy := isHeavy(exchange)
	if p.potential() < worth && p.now <= p.limit && !(heavy && p.mayLighten()) {
		return nil, errNothingToFree
	}
	projection, err := p.project(ctx)
	if err != nil {
		return nil, err
	}
	for next := byTheRules + 1; next <= lastRung && exchange.Estimate(projection) > p.limit; next++ {
		bolder := newPlanner(exchange, m.counter, size, next)
		bolder.memory = m.memory
		shorter, err := bolder.project(ctx)
		if err != nil {
			return nil, err
		}
		if exchange.Estimate(shorter) < exchange.Estimate(projection) {
			p, projection = bolder, shorter
		}
	}
	after := exchange.Estimate(projection)
	switch {
	case projection.Covers == 0, heavy && !p.isLong && after == p.now:
		return nil, errNothingToFree
	case after >= p.now, p.tokens(after) >= min(size, p.tokens(exchange.Original())):
		return nil, errWorse
	case heavy && p.isLighter(projection):
	case p.now-after < worth && (p.now <= p.limit || after > p.limit):
		return nil, errNothingToFree
	}
	projection.Before, projection.After = size, p.tokens(after)
	return p.summarize(projection, after <= p.high), nil
}

// project returns the projection of the best plan.
func (p *planner) project(ctx context.Context) (*session.Projection, error) {
	if err := p.findKept(); err != nil {
		return nil, err
	}
	if err := p.keepSummary(); err != nil {
		return nil, err
	}
	if err := p.useSummary(ctx); err != nil {
		return nil, err
	}
	if err := p.keepEvicted(); err != nil {
		return nil, err
	}
	projection, err := p.shorten(ctx)
	if err != nil || !isHeavy(p.exchange) {
		return projection, err
	}
	return p.lighten(ctx, projection)
}

// shorten plans for the prompt's tokens; where they are not too many, it leaves
// every turn at the level it has.
func (p *planner) shorten(ctx context.Context) (*session.Projection, error) {
	if !p.isLong {
		if err := p.reset(); err != nil {
			return nil, err
		}
		return p.render()
	}
	projection, err := p.search(ctx)
	if err != nil {
		return nil, err
	}
	return p.descend(projection)
}

// newPlanner looks at the exchange without reading a message.
func newPlanner(exchange *pipeline.Exchange, counter Counter, size int, rung rung) *planner {
	p := &planner{
		exchange: exchange, config: configOf(exchange), counter: counter, rate: exchange.Factor, rung: rung,
		made: map[[2]int]lineOf{}, ledgers: map[int]ledgerBlock{}, truncation: newTruncation(),
	}
	p.now = max(1, exchange.Estimate(exchange.Projection))
	// What was reported of this prompt may tell more than the model's average.
	p.rate = max(p.rate, float64(size)/float64(p.now))
	p.added = addedTo(exchange)
	limit := float64(exchange.Limit) / p.rate
	if exchange.Limit == 0 {
		limit = math.MaxInt32 // only its bytes can be too many
	}
	p.limit = int(limit)
	p.goal = int(p.config.Goal() * limit)
	if byBreakEven(exchange) {
		p.goal = min(p.goal, int(weigh(exchange, size).goal/p.rate))
	}
	if exchange.Order != nil {
		p.goal = min(p.goal, p.now/2)
	}
	p.high = int(p.config.TargetUtilization * limit)

	p.isLong = exchange.Limit > 0 && (float64(size) > p.config.TargetUtilization*float64(exchange.Limit) || !isHeavy(exchange))
	p.blockTokens = p.config.BlockTokens
	p.latest, p.attached = latestTyped(exchange.Digests), latestAttached(exchange.Digests)
	boundary := p.boundary()
	for i, bounds := range exchange.Turns {
		t := &turn{Turn: bounds, index: i, verbatim: bounds.From, spared: bounds.To}
		t.floor = p.standing(bounds)
		if covers := p.covered(); bounds.From < covers && covers < bounds.To {
			t.floor, t.spared = min(t.floor, 1), max(covers, p.newestGroup(t)) // it went on after the epoch
		}
		t.deepest = max(t.floor, p.deepest(i, boundary))
		t.isFixed = t.deepest == 0
		p.keepPinned(t)
		t.original = p.originals(bounds.From, bounds.To)
		p.turns = append(p.turns, t)
		isNewest := i == len(exchange.Turns)-1
		if p.latest >= bounds.From && p.latest < bounds.To && (p.rung < foldsTyped || isNewest) {
			p.keepUpTo(t, p.latest)
		}
	}
	if p.loop = p.opener(); p.loop >= 0 {
		opener := p.turns[p.loop]
		opener.deepest = min(opener.deepest, 1)
	}
	return p
}

// covered returns how many messages the current projection stands for.
func (p *planner) covered() int {
	if p.exchange.Projection == nil {
		return 0
	}
	return p.exchange.Projection.Covers
}

// standing returns the level of a turn in the current projection.
func (p *planner) standing(bounds conversation.Turn) int {
	projection, level := p.exchange.Projection, 0
	if bounds.From >= p.covered() {
		return 0
	}
	for _, part := range projection.Parts {
		if part.From < bounds.To && part.To > bounds.From {
			level = max(level, part.Level)
		}
	}
	return level
}

// deepest returns the level that a turn may go down to for what it holds. What a
// provider's own compaction stands for is not touched at all, nor is a call without its
// result. Nothing else binds a turn: what must stay of it stays behind its record.
func (p *planner) deepest(index, boundary int) int {
	bounds := p.exchange.Turns[index]
	if bounds.From <= boundary {
		return 0
	}
	var flags conversation.Flags
	for _, digest := range p.exchange.Digests[bounds.From:bounds.To] {
		flags |= digest.Flags
	}
	if flags.Has(conversation.HasCall) && !flags.Has(conversation.HasResult) {
		return 0
	}
	return p.config.DeepestLevel
}

// boundary returns the index of the last message that stands for a history only the
// provider knows; -1 without one. What precedes it may go on the last rungs: the
// provider does not need it.
func (p *planner) boundary() int {
	if p.rung >= foldsHeld {
		return -1
	}
	for i, digest := range slices.Backward(p.exchange.Digests) {
		if digest.Flags.Has(conversation.IsBoundary) {
			return i
		}
	}
	return -1
}

// latestTyped returns the index of the newest message that a person typed.
func latestTyped(digests []conversation.Digest) int {
	for i, digest := range slices.Backward(digests) {
		if digest.Role == conversation.User && digest.Flags.Has(conversation.HasTyped) {
			return i
		}
	}
	return -1
}

// latestAttached returns the index of the newest message of a person that has media.
func latestAttached(digests []conversation.Digest) int {
	for i, digest := range slices.Backward(digests) {
		if digest.Role == conversation.User && digest.Flags.Has(conversation.HasMedia) && !digest.Flags.Has(conversation.HasResult) {
			return i
		}
	}
	return -1
}

// keepUpTo keeps the turn's messages up to and with the one at index as they are.
// Behind results that message answers an assistant's calls: then the turn is cut
// at most, which keeps what was typed as well.
func (p *planner) keepUpTo(t *turn, index int) {
	if p.exchange.Digests[index].Flags.Has(conversation.HasResult) {
		t.deepest = min(t.deepest, max(t.floor, 1))
		return
	}
	t.verbatim = index + 1
	t.front = p.originals(t.From, t.verbatim)
}

// keepSummary keeps what a client put in place of a history that it has compacted
// itself, unless that fills a large part of the window: nothing else the model
// sees says what it says.
func (p *planner) keepSummary() error {
	if len(p.turns) == 0 || p.rung >= foldsPinned {
		return nil
	}
	first := p.turns[0]
	size := 0
	for i := first.From; i < first.To && p.exchange.Digests[i].Role == conversation.User; i++ {
		message, err := p.exchange.Message(i)
		if err != nil {
			return err
		}
		size += p.exchange.Digests[i].Tokens
		for _, block := range message.Blocks {
			if block.Kind == conversation.Text && isSummary(block.Text) && size < p.limit/8 && i >= first.verbatim {
				p.keepUpTo(first, i)
			}
		}
	}
	return nil
}

// potential returns an upper bound of what an epoch can free, without reading a
// message.
func (p *planner) potential() int {
	covered, potential := p.covered(), 0
	if projection := p.exchange.Projection; projection != nil {
		for _, part := range projection.Parts {
			if part.Level < p.config.DeepestLevel {
				potential += p.weigh(part)
			}
		}
	}
	for i, t := range p.turns {
		switch {
		case t.To > covered && !t.isFixed && i < len(p.turns)-1:
			potential += t.original - t.front
		case t.To <= covered && t.floor < p.config.DeepestLevel:
			potential -= t.front // it stays as it is at any level
		}
	}
	return potential + p.olderGroups()
}

// raise compresses turns before the tail, the oldest first, one level after the
// other, until the prompt has at most goal tokens.
func (p *planner) raise(ctx context.Context, tail, goal int) error {
	if err := p.raiseDeep(ctx, tail, goal); err != nil {
		return err
	}
	if err := p.raiseStale(ctx, tail, goal); err != nil {
		return err
	}
	if err := p.raiseTo(ctx, 1, tail, goal); err != nil {
		return err
	}
	if p.config.DeepestLevel >= 2 {
		if err := p.raiseTo(ctx, 2, tail, goal); err != nil {
			return err
		}
	}
	if p.config.DeepestLevel < 3 {
		return nil
	}
	for block := 0; block*blockTurns < tail && p.total > goal; block++ {
		if err := p.foldBlock(block, tail); err != nil {
			return err
		}
	}
	return nil
}

// raiseTo takes turns before end to a level, the oldest first, until the prompt has
// at most goal tokens.
func (p *planner) raiseTo(ctx context.Context, level, end, goal int) error {
	for i, t := range p.turns[:end] {
		if p.total <= goal {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if level == 1 && i%cutTogether == 0 {
			if err := p.each(p.turns[i:min(i+cutTogether, end)], p.cutAhead); err != nil {
				return err
			}
		}
		if err := p.raiseTurn(t, level); err != nil {
			return err
		}
	}
	return nil
}

// cutTogether is how many turns are shortened for L1 at once, a few more than it may take.
const cutTogether = 32

// cutAhead makes what a turn has at L1 if it may go there.
func (p *planner) cutAhead(t *turn) error {
	if t.level >= 1 || t.deepest < 1 {
		return nil
	}
	return p.shortenResults(t)
}

// raiseTurn takes a turn to a level if it may go there and L1 makes it smaller.
// At L2 a small turn may grow by a few tokens: on its own between two records it
// would cost a frame.
func (p *planner) raiseTurn(t *turn, level int) error {
	if t.level >= level || t.deepest < level {
		return nil
	}
	if err := p.read(t); err != nil {
		return err
	}
	if t.deepest < level {
		return nil
	}
	before, err := p.size(t, t.level)
	if err != nil {
		return err
	}
	after, err := p.size(t, level)
	if err != nil {
		return err
	}
	if level == 1 && after >= before {
		return nil
	}
	t.level = level
	p.total += after - before
	return nil
}

// foldBlock takes the turns of a block to L3.
func (p *planner) foldBlock(block, tail int) error {
	for _, t := range p.turns[block*blockTurns : min((block+1)*blockTurns, tail)] {
		if err := p.raiseTurn(t, 3); err != nil {
			return err
		}
	}
	return p.weighLine(block)
}

// weighLine counts the L3 line of a block again.
func (p *planner) weighLine(block int) error {
	var folded []*span
	for _, t := range p.turns[block*blockTurns : min((block+1)*blockTurns, len(p.turns))] {
		if t.level < 3 || t.written != nil {
			continue
		}
		if err := p.note(t); err != nil {
			return err
		}
		folded = append(folded, t.span())
	}
	size := 0
	if len(folded) > 0 {
		size = p.blockLine(folded).size
		if p.lines[ledgerLine] == 0 {
			p.lines[ledgerLine] = p.ledgerBudget()
			p.total += p.lines[ledgerLine]
		}
	}
	p.total += size - p.lines[block]
	p.lines[block] = size
	return nil
}

// reset puts every turn back to the level it has in the current projection.
func (p *planner) reset() error {
	p.total = p.exchange.Fixed + p.summary.tokens() + p.added[session.InSystem]
	for _, digest := range p.exchange.Digests[:conversation.Lead(p.exchange.Digests)] {
		p.total += digest.Tokens
	}
	for _, t := range p.turns {
		t.level = t.floor
		size, err := p.size(t, t.level)
		if err != nil {
			return err
		}
		p.total += size
	}
	p.lines = map[int]int{}
	for block := 0; block*blockTurns < len(p.turns); block++ {
		if err := p.weighLine(block); err != nil {
			return err
		}
	}
	return nil
}

// summarize describes the epoch that makes a projection.
func (p *planner) summarize(projection *session.Projection, reached bool) *epoch {
	e := &epoch{
		projection: *projection, levels: p.exchange.Levels(projection), reached: reached, fits: p.exchange.Estimate(projection) <= p.limit,
		before: p.exchange.Original(), rung: p.rung, unsaid: p.unsaid,
	}
	e.dropped, e.droppedFrom, e.droppedTo = p.left()
	for _, digest := range p.exchange.Digests[:projection.Covers] {
		e.original += digest.Tokens
	}
	for _, part := range projection.Parts {
		e.rendered += part.Tokens
		if part.Raw != nil {
			e.compacted += part.To - part.From
		}
	}
	return e
}

// tokens returns a size in the model's tokens.
func (p *planner) tokens(size int) int { return int(math.Ceil(float64(size) * p.rate)) }
