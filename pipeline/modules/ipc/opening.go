package ipc

import (
	"slices"
	"strings"

	"palimpsest/pipeline/ledger"
)

// What the ledger takes of a prompt at most: it keeps directives and changed files
// before the model however often their turns are folded, and must not fill a small
// window.
const (
	ledgerTokens   = 3000 // o200k: some 80 changed files beside what people ordered
	ledgerShare    = 0.07 // of what the prompt may have,
	smallShare     = 0.05 // or where that is less than smallWindow, most of which the newest turns take
	smallWindow    = 20_000
	smallestLedger = 60 // o200k tokens that are worth a block
)

// ledgerLine is the place of the ledger among the sizes of L3's lines.
const ledgerLine = -1

// ledgerTitle opens the ledger's block.
const ledgerTitle = "[ledger of all turns up to here]\n"

// ledgerBudget returns how many o200k tokens the ledger's block may have.
func (p *planner) ledgerBudget() int {
	share := ledgerShare
	if p.limit < smallWindow {
		share = smallShare
	}
	budget := min(ledgerTokens, int(share*float64(p.limit)))
	if budget < smallestLedger {
		return 0
	}
	return budget
}

// writeLedger writes the block that the projection of turns opens with: the ledger of
// exactly those turns, once one of them is at L3. What a model's summary stands for
// is left to that, which has the same facts.
func (p *planner) writeLedger(turns []*turn) error {
	p.ledger, p.unsaid = "", 0
	turns = slices.DeleteFunc(slices.Clone(turns), func(t *turn) bool { return t.written != nil })
	isFolded := false
	for _, t := range turns {
		isFolded = isFolded || t.level >= 3
	}
	budget := p.ledgerBudget()
	if !isFolded || budget == 0 {
		return nil
	}
	block, known := p.ledgers[len(turns)]
	if !known {
		var err error
		if block, err = p.ledgerBlock(turns, budget); err != nil {
			return err
		}
		p.ledgers[len(turns)] = block
	}
	p.ledger, p.unsaid = block.text, block.leftOut
	return nil
}

// ledgerBlock is a written ledger.
type ledgerBlock struct {
	text    string // empty: it has nothing to say
	leftOut int    // typed directives that it has no room for
}

// ledgerBlock returns the ledger of turns in so many o200k tokens at most.
func (p *planner) ledgerBlock(turns []*turn, budget int) (ledgerBlock, error) {
	kept := ledger.New()
	for _, t := range turns {
		if err := p.read(t); err != nil {
			return ledgerBlock{}, err
		}
		kept.AddMade(t.index, t.From, t.messages, t.calls())
	}
	if p.config.ObservationMasking {
		kept.Errors = nil // they quote what tools returned
	}
	text := kept.Text(budget, p.countText)
	block := ledgerBlock{leftOut: kept.LeftOut(text)}
	if text != "" {
		block.text = ledgerTitle + strings.TrimSuffix(text, "\n") + "\n"
	}
	return block, nil
}
