package ipc

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/certificate"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/ipc/extract"
)

// The limits of the ledger's share of a prompt. The ledger keeps directives and changed files in
// front of the model however often their turns are folded, and must not fill a small window.
const (
	ledgerTokens   = 3000 // o200k: some 80 changed files and the user's orders
	ledgerShare    = 0.07 // of the part that can change,
	smallShare     = 0.05 // or of a part below smallWindow, where the newest turns take most of it
	smallWindow    = 20_000
	smallestLedger = 60 // o200k tokens below which a block is not worth it
)

// ledgerLine is the ledger's key among the sizes of L3's lines.
const ledgerLine = -1

// ledgerTitle opens the ledger's block.
const ledgerTitle = "[ledger of all turns up to here]\n"

// opening writes the block of the ledger that a projection opens with.
type opening struct {
	history *history
	budget  *budget
	records *records
	blocks  map[[2]int]ledgerBlock            // by the number of turns they cover, and how many of them are left out
	known   map[[2]int]*certificate.Originals // by the end of their range and the number of turns

	text    string // the block, until the record that opens the projection has written it
	leftOut int    // typed directives that don't fit the block
}

// writeLedger writes the block at the beginning of a projection of turns, once one of them is at
// L2.
func (o *opening) writeLedger(turns []*turn, dropped int) error {
	o.text, o.leftOut = "", 0
	if !slices.ContainsFunc(turns, func(t *turn) bool { return t.written == nil && t.level >= 2 }) {
		return nil
	}
	block, err := o.block(turns, dropped)
	o.text, o.leftOut = block.text, block.leftOut
	return err
}

// block returns the ledger of exactly these turns, made once. It skips turns that a model's summary
// replaces, because the summary has the same facts.
func (o *opening) block(turns []*turn, dropped int) (ledgerBlock, error) {
	key := [2]int{len(turns), dropped}
	turns = slices.DeleteFunc(slices.Clone(turns), func(t *turn) bool { return t.written != nil })
	budget := o.ledgerBudget()
	if budget == 0 {
		return ledgerBlock{}, nil
	}
	block, known := o.blocks[key]
	if !known {
		var err error
		if block, err = o.ledgerBlock(turns, dropped, budget); err != nil {
			return ledgerBlock{}, err
		}
		o.blocks[key] = block
	}
	return block, nil
}

// ledgerBlock is a written ledger.
type ledgerBlock struct {
	text    string // "" if there is no content
	size    int    // o200k tokens
	leftOut int    // typed directives that don't fit
}

// ledgerBlock returns the ledger of turns in at most budget o200k tokens. The first dropped turns
// may be left out of the prompt.
func (o *opening) ledgerBlock(turns []*turn, dropped, budget int) (ledgerBlock, error) {
	originals, err := o.originals(turns)
	if err != nil {
		return ledgerBlock{}, err
	}
	if err := o.records.findUses(); err != nil {
		return ledgerBlock{}, err
	}
	kept := *originals.Ledger
	kept.Base = string(o.records.base)
	kept.Directives = slices.DeleteFunc(slices.Clone(kept.Directives), func(d ledger.Directive) bool { return o.isSaid(&d, dropped) })
	if o.history.config.ObservationMasking {
		kept.Errors = nil // they quote tool results
	}
	text := kept.Text(budget, o.history.countText)
	block := ledgerBlock{leftOut: kept.LeftOut(text)}
	if text != "" {
		block.text = ledgerTitle + strings.TrimSuffix(text, "\n") + "\n"
		block.size = o.history.countText(block.text)
	}
	return block, nil
}

// originals returns the content of turns that must not be lost, read once. Later turns stay in the
// prompt, and may have solved errors and finished tasks.
func (o *opening) originals(turns []*turn) (*certificate.Originals, error) {
	read := certificate.NewOriginals(o.history.memo)
	if len(turns) == 0 {
		return read, nil
	}
	end := turns[len(turns)-1].index + 1
	key := [2]int{end, len(turns)}
	if known := o.known[key]; known != nil {
		return known, nil
	}
	for _, t := range turns {
		if err := o.history.read(t); err != nil {
			return nil, err
		}
		read.Add(t.From, t.messages, t.calls())
	}
	for _, t := range o.history.turns[end:] {
		if err := o.history.read(t); err != nil {
			return nil, err
		}
		read.Follow(t.calls())
	}
	o.known[key] = read
	return read, nil
}

// isSaid reports whether the prompt still holds a directive as typed. Records keep typed text word
// for word, and the model sees its context there.
func (o *opening) isSaid(directive *ledger.Directive, dropped int) bool {
	if directive.Kind != ledger.Typed || o.history.digests[directive.Message].Role != conversation.User {
		return false
	}
	for _, t := range o.history.turns[dropped:] {
		if t.From <= directive.Message && directive.Message < t.To {
			typed := typedIn(&t.messages[directive.Message-t.From])
			bound := o.records.typed
			return directive.Message >= bound.from && utf8.RuneCountInString(typed) <= bound.longest && strings.Contains(typed, directive.Text)
		}
	}
	return false
}

// ledgerBudget returns how many o200k tokens the ledger's block may have.
func (o *opening) ledgerBudget() int {
	share, free := ledgerShare, o.budget.limit-o.budget.fixed
	if free < smallWindow {
		share = smallShare
	}
	budget := min(ledgerTokens, int(share*float64(free)))
	if budget < smallestLedger {
		return 0
	}
	return budget
}

// typedShare bounds typed messages as a share of the part that a compaction can change. They are
// kept before everything else, because people type few words and every later request depends on
// them.
const typedShare = 0.33

// typedLengths are limits in characters for one typed message. The first one that fits the share
// applies. Pastes are longer, and lose their middle.
var typedLengths = []int{4_000, 2_000, 1_000, 500, 250, shortestTyped}

// shortestTyped is the minimum of each typed message at L2 in characters, and of each one kept at
// L3.
const shortestTyped = 120

// charactersPerToken is about how many characters of a person's words are one o200k token.
const charactersPerToken = 4

// typedIn returns the text that a person typed in a message, word for word.
func typedIn(message *conversation.Message) string {
	var texts []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text && conversation.IsTyped(block.Text) && !message.IsPasted(i) {
			texts = append(texts, commandLine(block.Text))
		}
	}
	return strings.TrimSpace(conversation.WithoutReminders(strings.Join(texts, "\n")))
}

// commandLine returns a slash command as a person typed it, without the client's tags; any other
// text stays unchanged.
func commandLine(text string) string {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "<command-message>") && !strings.HasPrefix(trimmed, "<command-name>") {
		return text
	}
	_, rest, _ := strings.Cut(trimmed, "<command-name>")
	name, _, isNamed := strings.Cut(rest, "</command-name>")
	_, rest, _ = strings.Cut(trimmed, "<command-args>")
	arguments, behind, _ := strings.Cut(rest, "</command-args>")
	if !isNamed || strings.TrimSpace(behind) != "" {
		return text
	}
	return strings.TrimSpace(name + " " + strings.TrimSpace(arguments))
}

// typedBound is the limit of typed text in records.
type typedBound struct {
	longest int // characters of one message
	from    int // L3 leaves out the messages before this one, because the ledger keeps their orders
}

// of returns how many characters are kept of a message.
func (b typedBound) of(index int) int {
	if index < b.from {
		return shortestTyped
	}
	return b.longest
}

// boundTyped returns the limit at which the typed messages fit their share. It depends only on the
// originals and the window.
func (r *records) boundTyped() typedBound {
	const around = len("#1000 User: ")
	var indexes, lengths []int
	for _, t := range r.history.turns {
		calls := t.calls()
		for i := range calls {
			if said, _ := calls[i].Rejection(); said != "" {
				indexes, lengths = append(indexes, calls[i].Answered), append(lengths, utf8.RuneCountInString(said))
			}
		}
		for i := range t.messages {
			if t.messages[i].Role != conversation.User {
				continue
			}
			if length := utf8.RuneCountInString(typedIn(&t.messages[i])); length > 0 {
				indexes, lengths = append(indexes, t.From+i), append(lengths, length)
			}
		}
	}
	most := int(typedShare * charactersPerToken * float64(r.protection.budget.limit-r.protection.budget.fixed))
	for _, longest := range typedLengths {
		sum := 0
		for _, length := range lengths {
			sum += min(length, longest) + around
		}
		if sum <= most {
			return typedBound{longest: longest}
		}
	}
	bound := typedBound{shortestTyped, len(r.history.digests)}
	for i, length := range slices.Backward(lengths) {
		if most -= min(length, shortestTyped) + around; most < 0 {
			break
		}
		bound.from = indexes[i]
	}
	return bound
}

// withoutMiddle returns a text of about so many characters at most: its beginning and its end.
func withoutMiddle(text string, characters, index int) string {
	if len(text) <= characters || utf8.RuneCountInString(text) <= characters {
		return text
	}
	head, tail := extract.CutAt(text, characters*2/3), extract.CutFrom(text, characters/3)
	left := utf8.RuneCountInString(text[head:tail])
	return strings.TrimSpace(text[:head]) + fmt.Sprintf(" [… %s characters archived as %s …] ", extract.Thousands(left), extract.Archived(index)) + strings.TrimSpace(text[tail:])
}
