package ipc

import (
	"fmt"
	"os"

	"palimpsest/pipeline/session"
)

func (p *planner) debug(projection *session.Projection) {
	if os.Getenv("DBGP") == "" {
		return
	}
	var sizes, counts [4]int
	for _, t := range p.history.turns {
		n, _ := p.forms.size(t, t.level)
		sizes[t.level] += n
		counts[t.level]++
	}
	lines, ledger := 0, 0
	for b, n := range p.selection.sizes {
		if b == ledgerLine {
			ledger = n
		} else {
			lines += n
		}
	}
	typed := 0
	for _, t := range p.history.turns {
		if t.level >= 2 && t.record != nil {
			for _, l := range t.record.lines {
				if l.typed != "" {
					typed += p.history.countText(withoutMiddle(l.typed, p.forms.records.longest, 0))
				}
			}
		}
	}
	fmt.Fprintf(os.Stderr, "limit %d fixed %d goal-fixed %d now %d total %d exact %d | L0 %d:%d L1 %d:%d L2 %d:%d L3 %d lines %d | ledger %d (real %d) typed@%d %d\n", p.budget.limit, p.budget.fixed, p.budget.goal-p.budget.fixed, p.budget.now, p.selection.total, p.history.exchange.Estimate(projection),
		counts[0], sizes[0], counts[1], sizes[1], counts[2], sizes[2], counts[3], lines, ledger, p.history.countText(p.selection.opening.blocks[0].text), p.forms.records.longest, typed)
}
