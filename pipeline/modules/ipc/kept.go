package ipc

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
)

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
