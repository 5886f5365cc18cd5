package summary

import (
	"cmp"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// askedCharacters bounds the goal taken from the person's first words.
const askedCharacters = 400

// facts are the program's knowledge of the turns that a summary replaces.
type facts struct {
	directives  []string // verbatim, newest first
	modified    []string // files, newest first
	read        []string // files that were only read, newest first
	asked       string   // the person's first text
	typed       sayings  // by the person or an instruction file
	planted     sayings  // orders that appear only in tools' outputs
	identifiers []string // most wanted first
}

// factsOf reads turns from the lane's first one on.
func factsOf(turns []turn) *facts {
	f := &facts{}
	book := ledger.New()
	wanted := newIdentifiers()
	for i := range turns {
		book.Add(i, turns[i].From, turns[i].messages)
		for j := range turns[i].messages {
			f.addMessage(&turns[i].messages[j])
		}
		wanted.addTurn(i, turns[i].messages)
	}
	for _, mistake := range book.Errors {
		if mistake.Open() {
			wanted.addOpenError(mistake.Excerpt)
		}
	}
	f.addLedger(book)
	f.identifiers = wanted.ranked()
	return f
}

// addMessage notes typed text, and sentences in tool results that read like an order.
func (f *facts) addMessage(message *conversation.Message) {
	for _, text := range results(message) {
		f.planted.addOrders(text)
	}
	if message.Role != conversation.User {
		return
	}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text || !conversation.IsTyped(block.Text) {
			continue
		}
		text := Plain(block.Text)
		for _, sentence := range sentences(text) {
			f.typed.add(sentence)
		}
		if f.asked == "" {
			f.asked = oneLine(shortened(strings.TrimSpace(text), askedCharacters))
		}
	}
}

// addLedger adds the ledger's files and directives.
func (f *facts) addLedger(book *ledger.Ledger) {
	files := slices.Clone(book.Files)
	slices.SortStableFunc(files, func(a, b ledger.File) int { return cmp.Compare(b.Message, a.Message) })
	for i := range files {
		switch file := &files[i]; {
		case file.Gone:
			f.modified = append(f.modified, file.Path+" (deleted)")
		case file.Modified != ledger.Never:
			f.modified = append(f.modified, file.Path)
		default:
			f.read = append(f.read, file.Path)
		}
	}
	directives := slices.Clone(book.Directives)
	slices.SortStableFunc(directives, func(a, b ledger.Directive) int { return cmp.Compare(b.Message, a.Message) })
	for _, directive := range directives {
		for _, sentence := range sentences(directive.Text) {
			f.typed.add(sentence)
		}
		if directive.Kind != ledger.Instructions { // a client sends these with every request
			f.directives = append(f.directives, strings.TrimSpace(directive.Text))
		}
	}
}
