package ipc

import (
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// turn is a turn of the exchange with what is planned for it and what it would
// look like at each level. Its forms are made when they are first needed.
type turn struct {
	conversation.Turn

	index    int
	floor    int  // its level in the current projection: it never goes back up
	deepest  int  // the level that it may go down to
	level    int  // as planned
	isFixed  bool // nothing of it may change at any level
	verbatim int  // its messages before this one stay as they are at L2 and L3

	original int // o200k tokens as the client sent it
	front    int // o200k tokens of the verbatim messages

	messages []conversation.Message // nil: not read yet
	cut      []session.Part         // L1, a part a message; nil: not made yet
	cutSize  int                    // its o200k tokens
	record   *record                // L2 and L3 of what is not verbatim; nil: not made yet
	noted    int                    // o200k tokens of its entry at L2
	written  *written               // the summary that stands for what is not verbatim; nil: none
}

// read parses the turn's messages and sees what its calls and results allow.
func (p *planner) read(t *turn) error {
	if t.messages != nil {
		return nil
	}
	for i := t.From; i < t.To; i++ {
		message, err := p.exchange.Message(i)
		if err != nil {
			return fmt.Errorf("read turn %d: %w", t.index, err)
		}
		t.messages = append(t.messages, message)
	}
	// A call without its one result, or the other way round, is not ours to mend.
	if !isClosed(t.messages) {
		t.isFixed, t.deepest = true, min(t.deepest, t.floor)
	}
	return nil
}

// isClosed reports whether each call of the messages has exactly one result and
// each result its call.
func isClosed(messages []conversation.Message) bool {
	calls, results := map[string]int{}, map[string]int{}
	for _, message := range messages {
		for i := range message.Blocks {
			switch block := &message.Blocks[i]; block.Kind {
			case conversation.ToolCall:
				calls[block.ID]++
			case conversation.ToolResult:
				results[block.ID]++
			case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	if len(calls) != len(results) {
		return false
	}
	for id, n := range calls {
		if n != 1 || results[id] != 1 {
			return false
		}
	}
	return true
}

// cutDown makes the turn's L1.
func (p *planner) cutDown(t *turn) error {
	if t.cut != nil {
		return nil
	}
	if err := p.read(t); err != nil {
		return err
	}
	for i, message := range t.messages {
		part := p.untouched(t.From+i, t.From+i+1, 1)
		if flags := p.exchange.Digests[t.From+i].Flags; !t.isFixed && flags.Has(conversation.HasResult) && !flags.Has(conversation.LoadsTools) {
			if changed, isCut := p.cutResults(t.From+i, message); isCut {
				// A result that has no shorter form stays, a screenshot for one.
				if cut, err := p.encoded(t.From+i, changed); err == nil && cut.Tokens < part.Tokens {
					part = cut
				}
			}
		}
		t.cut = append(t.cut, part)
		t.cutSize += part.Tokens
	}
	return nil
}

// note makes the turn's L2 and what L3 is made of.
func (p *planner) note(t *turn) error {
	if t.record != nil {
		return nil
	}
	if err := p.read(t); err != nil {
		return err
	}
	t.record = newRecord(t.verbatim, t.messages[t.verbatim-t.From:])
	t.noted = p.countText(t.record.entry(false))
	return nil
}

// size returns the o200k tokens of a turn at a level; at L3 without its share of
// the block's line.
func (p *planner) size(t *turn, level int) (int, error) {
	switch level {
	case 0:
		return t.original, nil
	case 1:
		err := p.cutDown(t)
		return t.cutSize, err
	case 2:
		err := p.note(t)
		return t.front + t.noted, err
	default:
		err := p.note(t)
		return t.front, err
	}
}

// untouched returns the part of messages that stay as the client sent them.
func (p *planner) untouched(from, to, level int) session.Part {
	part := session.Part{From: from, To: to, Level: level, Messages: to - from}
	for _, digest := range p.exchange.Digests[from:to] {
		part.Tokens += digest.Tokens
	}
	return part
}

// encoded returns the part of a message that was changed at L1, without the cache
// markers that stood in it: a client's markers move on, this one never would.
func (p *planner) encoded(index int, message conversation.Message) (session.Part, error) {
	raw, err := p.exchange.Codec.Encode(message)
	if err != nil {
		return session.Part{}, fmt.Errorf("encode message %d: %w", index, err)
	}
	raw = p.exchange.Codec.Mark(raw, "")
	return session.Part{From: index, To: index + 1, Level: 1, Raw: raw, Tokens: p.counter.Message(message), Messages: 1}, nil
}

func (p *planner) countText(text string) int {
	if text == "" {
		return 0
	}
	return p.counter.Message(textMessage(conversation.User, text))
}

func textMessage(role conversation.Role, text string) conversation.Message {
	return conversation.Message{
		Role:    role,
		Blocks:  []conversation.Block{{Kind: conversation.Text, Text: text}},
		Changed: true,
	}
}

// isSummary reports whether a user's text is what a client put in place of a
// history that it has compacted itself.
func isSummary(text string) bool {
	for _, marker := range []string{
		"This session is being continued from a previous conversation",
		"The conversation history before this point was compacted into the following summary",
		"Another language model started to solve this problem and produced a summary",
		"Earlier context was compacted. Summary of your actions",
		"## Conversation Summary",
	} {
		if strings.Contains(text, marker) {
			return true
		}
	}
	return false
}
