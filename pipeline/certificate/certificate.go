// Package certificate compares a compacted prompt with the originals: which of the orders, the
// typed messages, the plan, the open tasks, the changed files, the open errors, the decisions and
// the failed attempts are in it, and which the model can recall by a pointer in it. It uses no
// model and no clock, so that the same originals and the same prompt give the same result.
package certificate

import (
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/session"
)

// The kinds of content that must not be lost, in the order of a certificate.
const (
	Orders   = "orders"
	Typed    = "typed messages"
	Plan     = "plan"
	Tasks    = "open tasks"
	Files    = "changed files"
	Errors   = "open errors"
	Decided  = "decisions"
	Attempts = "failed attempts"
)

// mostMissing limits the messages that a certificate names for each kind.
const mostMissing = 20

// Originals are a conversation as its client sent it.
type Originals struct {
	Ledger *ledger.Ledger // of the added turns; it must not be changed

	typed []text
	turns int
}

// text is a text of a message.
type text struct {
	message int
	text    string
}

// NewOriginals returns Originals without a message. The memo may be that of other Originals of the
// same conversation.
func NewOriginals(memo *ledger.Memo) *Originals { return &Originals{Ledger: ledger.NewWith(memo)} }

// Add reads one whole turn that the projection replaces. Turns come in order, each once.
func (o *Originals) Add(first int, messages []conversation.Message, calls []ledger.Made) {
	o.Ledger.AddMade(o.turns, first, messages, calls)
	o.turns++
	for i := range calls {
		if said, _ := calls[i].Rejection(); said != "" {
			o.typed = append(o.typed, text{calls[i].Answered, said})
		}
	}
	for i := range messages {
		if messages[i].Role != conversation.User {
			continue
		}
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if block.Kind != conversation.Text || !conversation.IsTyped(block.Text) || messages[i].IsPasted(j) {
				continue
			}
			if typed := ledger.TypedText(block.Text); typed != "" {
				o.typed = append(o.typed, text{first + i, typed})
			}
		}
	}
}

// Follow reads the calls of a later turn, which stays unchanged and may solve errors and finish
// tasks.
func (o *Originals) Follow(calls []ledger.Made) {
	o.Ledger.Follow(o.turns, calls)
	o.turns++
}

// Make returns the certificate of a projection that replaces the added turns.
func Make(projection *session.Projection, originals *Originals) session.Certificate {
	s := newSent(projection)
	kept := originals.Ledger
	var orders, plans, errors, decisions, attempts []text
	for _, directive := range kept.Directives {
		switch directive.Kind {
		case ledger.Typed:
			orders = append(orders, text{directive.Message, directive.Text})
		case ledger.Plan:
			plans = append(plans, text{directive.Message, directive.Text})
		case ledger.Instructions:
		}
	}
	for i := range kept.Errors {
		if e := &kept.Errors[i]; e.Open() {
			errors = append(errors, text{e.Message, e.Subject})
		}
	}
	for _, decision := range kept.Decisions {
		decisions = append(decisions, text{decision.Message, decision.Text})
	}
	for _, attempt := range kept.FailedAttempts() {
		attempts = append(attempts, text{attempt.Message, attempt.Text})
	}
	return session.Certificate{
		s.texts(Orders, orders), s.lines(Typed, originals.typed), s.lines(Plan, plans), s.tasks(kept.Tasks), s.files(kept),
		s.texts(Errors, errors), s.texts(Decided, decisions), s.texts(Attempts, attempts),
	}
}

// texts counts texts that must be in the prompt word for word.
func (s *sent) texts(what string, texts []text) session.Kept {
	kept := session.Kept{What: what}
	for _, one := range texts {
		s.count(&kept, one.message, s.isOriginal(one.message) || s.holds(one.text))
	}
	return kept
}

// lines counts texts that may be in the prompt line by line, because the code between the lines of
// a typed message is not known.
func (s *sent) lines(what string, texts []text) session.Kept {
	kept := session.Kept{What: what}
	for _, one := range texts {
		inPrompt := s.isOriginal(one.message) || s.holds(one.text)
		if !inPrompt {
			inPrompt = true
			for line := range strings.Lines(one.text) {
				inPrompt = inPrompt && s.holds(line)
			}
		}
		s.count(&kept, one.message, inPrompt)
	}
	return kept
}

// tasks counts the open tasks. Only a task's text counts, because its newest call may name it by a
// number alone.
func (s *sent) tasks(tasks []ledger.Task) session.Kept {
	kept := session.Kept{What: Tasks}
	for i := range tasks {
		if task := &tasks[i]; task.Open() {
			s.count(&kept, task.Made, s.isOriginal(task.Made) || s.holds(task.Text))
		}
	}
	return kept
}

// files counts the changed files that still exist.
func (s *sent) files(from *ledger.Ledger) session.Kept {
	kept := session.Kept{What: Files}
	for _, file := range from.Changed() {
		s.count(&kept, file.Modified, s.isOriginal(file.Modified) || ledger.Mentions(s.text, file.Path, file.IsOnly))
	}
	return kept
}

// count counts one item of a message.
func (s *sent) count(kept *session.Kept, message int, inPrompt bool) {
	kept.All++
	switch {
	case inPrompt:
		kept.InPrompt++
	case s.points(message):
		kept.Archived++
	case len(kept.Missing) < mostMissing:
		kept.Missing = append(kept.Missing, message)
	}
}
