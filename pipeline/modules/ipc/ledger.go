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

// opening writes the block of the ledger that a projection opens with.
type opening struct {
	history *history
	budget  *budget
	blocks  map[int]ledgerBlock // by how many turns they cover

	text    string // what the record that opens the projection still has to say
	leftOut int    // typed directives that the block has no room for
}

// writeLedger writes the block that the projection of turns opens with: the ledger of
// exactly those turns, once one of them is at L3. What a model's summary stands for
// is left to that, which has the same facts.
func (o *opening) writeLedger(turns []*turn) error {
	o.text, o.leftOut = "", 0
	turns = slices.DeleteFunc(slices.Clone(turns), func(t *turn) bool { return t.written != nil })
	isFolded := false
	for _, t := range turns {
		isFolded = isFolded || t.level >= 3
	}
	budget := o.ledgerBudget()
	if !isFolded || budget == 0 {
		return nil
	}
	block, known := o.blocks[len(turns)]
	if !known {
		var err error
		if block, err = o.ledgerBlock(turns, budget); err != nil {
			return err
		}
		o.blocks[len(turns)] = block
	}
	o.text, o.leftOut = block.text, block.leftOut
	return nil
}

// ledgerBlock is a written ledger.
type ledgerBlock struct {
	text    string // empty: it has nothing to say
	leftOut int    // typed directives that it has no room for
}

// ledgerBlock returns the ledger of turns in so many o200k tokens at most.
func (o *opening) ledgerBlock(turns []*turn, budget int) (ledgerBlock, error) {
	kept := ledger.New()
	for _, t := range turns {
		if err := o.history.read(t); err != nil {
			return ledgerBlock{}, err
		}
		kept.AddMade(t.index, t.From, t.messages, t.calls())
	}
	if err := o.follow(kept, turns); err != nil {
		return ledgerBlock{}, err
	}
	if o.history.config.ObservationMasking {
		kept.Errors = nil // they quote what tools returned
	}
	text := kept.Text(budget, o.history.countText)
	block := ledgerBlock{leftOut: kept.LeftOut(text)}
	if text != "" {
		block.text = ledgerTitle + strings.TrimSuffix(text, "\n") + "\n"
	}
	return block, nil
}

// ledgerBudget returns how many o200k tokens the ledger's block may have.
func (o *opening) ledgerBudget() int {
	share := ledgerShare
	if o.budget.limit < smallWindow {
		share = smallShare
	}
	budget := min(ledgerTokens, int(share*float64(o.budget.limit)))
	if budget < smallestLedger {
		return 0
	}
	return budget
}
