package ledger

// Memo remembers the orders, decisions and failed attempts in texts, so that several ledgers of one
// conversation look for them once. It is not safe for concurrent use.
type Memo struct {
	typed, said map[string][]found
}

// NewMemo returns an empty Memo.
func NewMemo() *Memo { return &Memo{typed: map[string][]found{}, said: map[string][]found{}} }

// found is a sentence that matters.
type found struct {
	kind sentenceKind
	text string
}

// sentenceKind is why a sentence matters.
type sentenceKind byte

const (
	orders sentenceKind = iota
	decides
	fails
)

// typedIn returns the orders and decisions in a person's text.
func (m *Memo) typedIn(text string) []found {
	return remembered(m.typed, text, func() (all []found) {
		for line := range sentences(text) {
			if order, is := ordered(line); is {
				all = append(all, found{orders, bounded(order, directiveCharacters)})
			} else if isDecision(line) {
				all = append(all, found{decides, line})
			}
		}
		return all
	})
}

// saidIn returns the decisions and failed attempts in the model's text.
func (m *Memo) saidIn(text string) []found {
	return remembered(m.said, text, func() (all []found) {
		for line := range sentences(withoutFences(ownWords(text))) {
			if isAttempt(line) {
				all = append(all, found{fails, line})
			} else if isDecision(line) {
				all = append(all, found{decides, line})
			}
		}
		return all
	})
}

func remembered(known map[string][]found, text string, find func() []found) []found {
	all, isKnown := known[text]
	if !isKnown {
		all = find()
		known[text] = all
	}
	return all
}
