package ipc

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// turn is a turn of the exchange with its plan and its form at each level. Each form is made when
// it is first needed.
type turn struct {
	conversation.Turn
	*reading // nil until read

	index    int
	floor    int  // its level in the current projection: it never goes back up
	deepest  int  // the level that it may go down to
	level    int  // as planned
	isFixed  bool // it may not change at any level
	verbatim int  // its messages before this one stay as they are at L2 and L3
	spared   int  // and from this one on at L1

	isEvicted bool // its media are out, at any level

	original int // o200k tokens as the client sent it
	front    int // o200k tokens of the verbatim messages

	shorter      []conversation.Message // those that L1 changes, by their place; nil until computed
	sizes        []int                  // o200k tokens of the messages at L1
	cut          []session.Part         // L1, a part a message; nil until encoded
	cutSize      int                    // its o200k tokens
	stripped     []session.Part         // L0 without media, a part a message; nil until computed
	strippedSize int                    // its o200k tokens

	isKept   bool   // kept has been made
	kept     []kept // its messages that stay behind its record
	keptSize int    // its o200k tokens

	record  *record  // L2 and L3 of the messages that are not verbatim; nil until computed
	written *written // the summary of the messages that are not verbatim; nil if absent
}

// forgetL1 drops the turn's L1 because it would now be different.
func (t *turn) forgetL1() { t.shorter, t.sizes, t.cut, t.cutSize = nil, nil, nil, 0 }

// forms renders turns at each level.
type forms struct {
	media   *media
	cuts    *cuts
	records *records
}

func newForms(history *history, protection *protection) *forms {
	media := &media{history: history, protection: protection}
	return &forms{
		media:   media,
		cuts:    &cuts{history: history, protection: protection, media: media},
		records: &records{history: history, protection: protection},
	}
}

// size returns the o200k tokens of a turn at a level; at L3 without its share of
// the block's line.
func (f *forms) size(t *turn, level int) (int, error) {
	switch level {
	case 0:
		if t.isEvicted {
			err := f.media.strip(t)
			return t.strippedSize, err
		}
		return t.original, nil
	case 1:
		err := f.cuts.shortenResults(t)
		return t.cutSize, err
	case 2:
		err := f.records.note(t)
		return t.front + t.record.size + t.keptSize, err
	default:
		err := f.records.note(t)
		return t.front + t.keptSize, err
	}
}

// kept is a message that follows the record of a turn: one that stays, whole or reduced to the
// blocks that make tools known, or one written for the record.
type kept struct {
	role     conversation.Role
	raw      json.RawMessage       // of a message that stays
	message  *conversation.Message // of a message written for the record
	tokens   int                   // o200k
	isAnswer bool                  // it is the assistant's last text
}

// keep collects, in order, the messages that stay of a turn when it is folded.
func (r *records) keep(t *turn) error {
	if t.isKept {
		return nil
	}
	if err := r.history.read(t); err != nil {
		return err
	}
	wanted := r.protection.wantedOf(t)
	for i, message := range t.messages {
		index := t.From + i
		switch {
		case index < t.verbatim:
		case r.protection.fates[index] == stays:
			t.add(message.Role, r.history.exchange.Conversation.Unmarked(index), r.history.digests[index].Tokens)
		case len(wanted[i]) > 0:
			raw, err := r.history.exchange.Conversation.WriteUnmarked(part(message, wanted[i]))
			if err != nil {
				return err
			}
			message.Blocks = wanted[i]
			t.add(message.Role, raw, r.history.count(message))
		}
	}
	t.isKept = true
	return nil
}

// add adds a message after the turn's record.
func (t *turn) add(role conversation.Role, raw json.RawMessage, tokens int) {
	t.kept = append(t.kept, kept{role: role, raw: raw, tokens: tokens})
	t.keptSize += tokens
}

// part returns a message with some of its blocks.
func part(message conversation.Message, blocks []conversation.Block) conversation.Message {
	if len(blocks) < len(message.Blocks) {
		message.Blocks, message.Changed = blocks, true
	}
	return message
}
