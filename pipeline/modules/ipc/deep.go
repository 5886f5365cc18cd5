package ipc

import (
	"context"

	"palimpsest/pipeline/conversation"
)

// leastAt1 returns what messages have at L1 at least, in o200k tokens: it cuts tool
// results and leaves out outdated notices.
func (p *planner) leastAt1(from, to int) int {
	size := 0
	for i, digest := range p.exchange.Digests[from:to] {
		if !digest.Flags.Has(conversation.HasResult) && p.fates[from+i] != isOutdated {
			size += digest.Tokens + p.added[from+i]
		}
	}
	return size
}

// raiseDeep takes all turns before end down to L2 at once where the prompt surely has
// more than goal tokens with all of them at L1, and at L2 as well: where every turn
// goes deeper nobody needs to know what it would have at L1.
func (p *planner) raiseDeep(ctx context.Context, end, goal int) error {
	if p.config.DeepestLevel < 3 || p.total <= goal {
		return nil
	}
	least := p.total
	for _, t := range p.turns[:end] {
		if t.level == 0 && t.deepest > 0 {
			least -= t.original - p.leastAt1(t.From, t.To)
		}
	}
	if least <= goal {
		return nil
	}
	least = p.total
	for _, t := range p.turns[:end] {
		switch {
		case t.level >= 2 || t.deepest == 0:
		case t.deepest >= 2:
			before, err := p.size(t, t.level)
			if err != nil {
				return err
			}
			after, err := p.size(t, 2)
			if err != nil {
				return err
			}
			least -= before - after
		case t.level == 0:
			least -= t.original - p.leastAt1(t.From, t.To)
		}
	}
	if least <= goal {
		return nil
	}
	return p.raiseTo(ctx, 2, end, goal)
}
