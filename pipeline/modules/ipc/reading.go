package ipc

import (
	"encoding/json"
	"fmt"
	"iter"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/session"
)

// memory is what a module remembers of the turns of a history.
type memory map[conversation.Turn]*reading

// reading is what the messages of a turn say, whatever is planned for it. What it
// takes time to find is found when it is first needed.
type reading struct {
	from     int // index of the first message
	messages []conversation.Message
	isClosed bool

	made  []ledger.Made // nil: not looked at yet
	short []shortForm   // L1 of its messages; nil if none was made yet
	whole *record       // of all its messages, in a memory; nil: not made yet
}

// shortForm is what L1 leaves of a message whose media stay.
type shortForm struct {
	isMade  bool
	message conversation.Message
	size    int             // o200k tokens
	raw     json.RawMessage // nil: not encoded yet
}

// read parses the turn's messages and sees what its calls and results allow.
func (p *planner) read(t *turn) error {
	if t.reading != nil {
		return nil
	}
	found := p.memory[t.Turn]
	if found == nil {
		found = &reading{from: t.From, messages: make([]conversation.Message, 0, t.To-t.From)}
		for i := t.From; i < t.To; i++ {
			message, err := p.exchange.Message(i)
			if err != nil {
				return fmt.Errorf("read turn %d: %w", t.index, err)
			}
			found.messages = append(found.messages, message)
		}
		found.isClosed = isClosed(found.messages)
		if p.memory != nil {
			p.memory[t.Turn] = found
		}
	}
	t.reading = found
	// A call without its one result, or the other way round, is not ours to mend.
	if !found.isClosed {
		t.isFixed, t.deepest = true, min(t.deepest, t.floor)
	}
	return nil
}

// calls returns the turn's calls, in order.
func (r *reading) calls() []ledger.Made {
	if r.made == nil {
		r.made = ledger.Calls(r.from, r.messages)
	}
	return r.made
}

// with returns what the turn says with another message in place of one of its own. Its
// calls are those that were made.
func (r *reading) with(place int, message conversation.Message) *reading {
	changed := &reading{from: r.from, isClosed: r.isClosed, made: r.made}
	changed.messages = append(changed.messages, r.messages...)
	changed.messages[place] = message
	return changed
}

// shortOf returns what L1 leaves of message i of a turn that has been read, and its
// o200k tokens.
func (p *planner) shortOf(t *turn, i int) (conversation.Message, int) {
	if t.short == nil {
		t.short = make([]shortForm, len(t.messages))
	}
	form := &t.short[i]
	if !form.isMade {
		form.isMade = true
		form.message, form.size = p.cutResults(t.From+i, t.messages[i], p.exchange.Digests[t.From+i])
	}
	return form.message, form.size
}

// encodedShort returns the part of message i of a turn whose L1 has been made.
func (p *planner) encodedShort(t *turn, i int) (session.Part, error) {
	if t.isEvicted || t.messages[i].Changed {
		return p.encoded(t.From+i, t.shorter[i], p.counter.Message(t.shorter[i]))
	}
	form := &t.short[i]
	if form.raw == nil {
		part, err := p.encoded(t.From+i, form.message, form.size)
		form.raw = part.Raw
		return part, err
	}
	return shortPart(t.From+i, form.raw, form.size), nil
}

// isClosed reports whether each call of the messages has exactly one result and
// each result its call.
func isClosed(messages []conversation.Message) bool {
	calls, results := 0, 0
	for i := range messages {
		for j := range messages[i].Blocks {
			switch messages[i].Blocks[j].Kind {
			case conversation.ToolCall:
				calls++
			case conversation.ToolResult:
				results++
			case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	if calls != results || calls == 0 {
		return calls == results
	}
	answered := make(map[string]bool, calls)
	for block := range blocksOf(messages, conversation.ToolCall) {
		if _, again := answered[block.ID]; again {
			return false
		}
		answered[block.ID] = false
	}
	for block := range blocksOf(messages, conversation.ToolResult) {
		if again, isCalled := answered[block.ID]; again || !isCalled {
			return false
		}
		answered[block.ID] = true
	}
	return true
}

// blocksOf yields the blocks of a kind.
func blocksOf(messages []conversation.Message, kind conversation.Kind) iter.Seq[*conversation.Block] {
	return func(yield func(*conversation.Block) bool) {
		for i := range messages {
			for j := range messages[i].Blocks {
				if block := &messages[i].Blocks[j]; block.Kind == kind && !yield(block) {
					return
				}
			}
		}
	}
}
