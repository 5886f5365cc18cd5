package ipc

import (
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// turn is a turn of the exchange with what is planned for it and what it would
// look like at each level. Its forms are made when they are first needed.
type turn struct {
	conversation.Turn
	*reading // nil: not read yet

	index    int
	floor    int  // its level in the current projection: it never goes back up
	deepest  int  // the level that it may go down to
	level    int  // as planned
	isFixed  bool // nothing of it may change at any level
	verbatim int  // its messages before this one stay as they are at L2 and L3
	spared   int  // and from this one on at L1

	isEvicted bool // its media are out, at any level

	original int // o200k tokens as the client sent it
	front    int // o200k tokens of the verbatim messages

	shorter      []conversation.Message // those that L1 changes, by their place; nil: not made yet
	sizes        []int                  // o200k tokens of the messages at L1
	cut          []session.Part         // L1, a part a message; nil: not encoded yet
	cutSize      int                    // its o200k tokens
	stripped     []session.Part         // L0 without media, a part a message; nil: not made yet
	strippedSize int                    // its o200k tokens

	isKept   bool   // kept has been made
	kept     []kept // what stays of it behind its record
	keptSize int    // its o200k tokens

	record  *record  // L2 and L3 of what is not verbatim; nil: not made yet
	written *written // the summary that stands for what is not verbatim; nil if none
}

// shortenResults makes the messages that the turn has at L1 and weighs them.
func (p *planner) shortenResults(t *turn) error {
	if t.shorter != nil {
		return nil
	}
	if err := p.read(t); err != nil {
		return err
	}
	t.shorter = make([]conversation.Message, len(t.messages))
	for i, message := range t.messages {
		digest := p.exchange.Digests[t.From+i]
		if p.leavesOut(t, t.From+i) {
			t.sizes = append(t.sizes, 0)
			continue
		}
		shorter, size := message, p.originals(t.From+i, t.From+i+1)
		if !t.isFixed && t.From+i < t.spared && digest.Flags.Has(conversation.HasResult) {
			if changed, less := p.shortOf(t, i); less < size {
				shorter, size = changed, less
			}
		}
		if t.isEvicted {
			if bare, had := p.withoutMedia(t.From+i, shorter); had {
				shorter, size = bare, p.counter.Message(bare)
			}
		}
		if shorter.Changed {
			t.shorter[i] = shorter
		}
		t.sizes = append(t.sizes, size)
		t.cutSize += size
	}
	return nil
}

// cutDown encodes the turn's L1.
func (p *planner) cutDown(t *turn) error {
	if t.cut != nil {
		return nil
	}
	if err := p.shortenResults(t); err != nil {
		return err
	}
	t.cutSize = 0
	for i, shorter := range t.shorter {
		part := p.untouched(t.From+i, t.From+i+1, 1)
		if p.leavesOut(t, t.From+i) {
			part = session.Part{From: t.From + i, To: t.From + i + 1, Level: 1, Raw: json.RawMessage{}}
		}
		if shorter.Changed {
			// A result that has no shorter form stays, a screenshot for one.
			if cut, err := p.encodedShort(t, i); err == nil {
				part = cut
			}
		}
		t.cut = append(t.cut, part)
		t.cutSize += p.weigh(part)
	}
	return nil
}

// leavesOut reports whether L1 leaves a message out: a notice that a later one makes
// worthless, between a message of the user and what comes next.
func (p *planner) leavesOut(t *turn, index int) bool {
	return p.fates[index] == isOutdated && !t.isFixed && index < t.spared && index > 0 && p.exchange.Digests[index-1].Role != conversation.Assistant
}

// forgetL1 drops what was made of the turn for L1: it would come out otherwise.
func (t *turn) forgetL1() { t.shorter, t.sizes, t.cut, t.cutSize = nil, nil, nil, 0 }

// note makes what the turn has at L2 and what L3 is made of.
func (p *planner) note(t *turn) error {
	if err := p.noteBand(t); err != nil {
		return err
	}
	if err := p.keep(t); err != nil {
		return err
	}
	return p.weighRecord(t)
}

// weighRecord counts what the turn has at L2.
func (p *planner) weighRecord(t *turn) error {
	if t.record.size == 0 {
		t.record.size = p.countText(t.record.entry())
	}
	return nil
}

// size returns the o200k tokens of a turn at a level; at L3 without its share of
// the block's line.
func (p *planner) size(t *turn, level int) (int, error) {
	switch level {
	case 0:
		if t.isEvicted {
			err := p.strip(t)
			return t.strippedSize, err
		}
		return t.original, nil
	case 1:
		err := p.shortenResults(t)
		return t.cutSize, err
	case 2:
		err := p.note(t)
		return t.front + t.record.size + t.keptSize, err
	default:
		err := p.note(t)
		return t.front + t.keptSize, err
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

// encoded returns the part of a message that was changed at L1 and has so many tokens,
// without the cache markers that stood in it: a client's markers move on, this one never
// would.
func (p *planner) encoded(index int, message conversation.Message, tokens int) (session.Part, error) {
	raw, err := p.exchange.Codec.Encode(message)
	if err != nil {
		return session.Part{}, fmt.Errorf("encode message %d: %w", index, err)
	}
	raw = p.exchange.Codec.Mark(raw, "")
	return shortPart(index, raw, tokens), nil
}

// shortPart returns the part of a message at L1.
func shortPart(index int, raw json.RawMessage, tokens int) session.Part {
	return session.Part{From: index, To: index + 1, Level: 1, Raw: raw, Tokens: tokens, Messages: 1}
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
