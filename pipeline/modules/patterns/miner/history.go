package miner

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/wire"
)

// history is a lane as it was recorded, with its ledger.
type history struct {
	messages []conversation.Message
	hashes   []conversation.Hash // of the messages' bytes
	turns    []conversation.Turn
	ledger   *ledger.Ledger
	calls    [][]ledger.Made // of each turn
	fresh    [][]ledger.Directive
}

// readHistory reads the messages of a lane.
func readHistory(codec wire.Codec, raw []json.RawMessage) (*history, error) {
	h := &history{ledger: ledger.New()}
	digests := make([]conversation.Digest, len(raw))
	for i, one := range raw {
		message, err := codec.Parse(one)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		h.messages, h.hashes = append(h.messages, message), append(h.hashes, sha256.Sum256(one))
		digests[i] = conversation.Digest{Role: message.Role, Flags: message.Flags()}
	}
	h.turns = conversation.Turns(digests)
	for n, turn := range h.turns {
		part := h.messages[turn.From:turn.To]
		calls := ledger.Calls(turn.From, part)
		h.ledger.AddMade(n, turn.From, part, calls)
		h.calls = append(h.calls, calls)
		var fresh []ledger.Directive
		for _, directive := range h.ledger.Directives {
			if directive.Kind == ledger.Typed && directive.Message >= turn.From {
				fresh = append(fresh, directive)
			}
		}
		h.fresh = append(h.fresh, fresh)
	}
	return h, nil
}

// typed returns what a person typed in a message; empty for those of others.
func (h *history) typed(message int) string {
	if h.messages[message].Role != conversation.User {
		return ""
	}
	var all []string
	for i := range h.messages[message].Blocks {
		if block := &h.messages[message].Blocks[i]; block.Kind == conversation.Text {
			if text := ledger.TypedText(block.Text); text != "" {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, "\n")
}
