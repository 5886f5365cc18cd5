package session

import (
	"sync"

	"palimpsest/pipeline/conversation"
)

const (
	// historyMemory bounds what remembered histories take in memory, in bytes.
	historyMemory = 32 << 20
	// shortHistory is how many messages a history has whose links are not worth remembering.
	shortHistory = 32
)

// history is the longest history with a beginning that was met lately: a client sends
// all of it again with every request, and the links of what it has sent before stay.
type history struct {
	mu         sync.Mutex
	identities []conversation.Hash
	chain      []conversation.Hash // one more
}

// weight is what the history takes in memory, in bytes, roughly.
func (h *history) weight() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return uint32(200 + 64*cap(h.chain)) //nolint:gosec // a list has at most wire.MaxElements
}

// Chain is Chain for a request: the links that its history shares with one before it are
// not made again. They belong to the resolver: nobody may change them.
func (r *Resolver) Chain(scope Scope, hint Hint, messages []conversation.Digest) []conversation.Hash {
	if len(messages) < shortHistory {
		return Chain(scope, hint, messages)
	}
	beginning := Chain(scope, hint, messages[:1])
	known, ok := r.histories.Get(beginning[1])
	if !ok {
		known = &history{chain: beginning[:1]}
	}
	chain, grown := known.links(messages)
	if grown {
		r.histories.Set(beginning[1], known) // it takes more memory now
	}
	return chain
}

// links returns the links of messages, which begin as the history does, and reports
// whether the history is a longer one now.
func (h *history) links(messages []conversation.Digest) (chain []conversation.Hash, grown bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	shared, length := 0, len(h.identities)
	for shared < min(length, len(messages)) && h.identities[shared] == messages[shared].Identity {
		shared++
	}
	grown = len(messages) > length
	identities, chain := h.identities, h.chain
	if shared < min(length, len(messages)) { // who was given the rest still reads it
		chain = append(make([]conversation.Hash, 0, len(messages)+1), chain[:shared+1]...)
		identities = nil
		if grown {
			identities = append(make([]conversation.Hash, 0, len(messages)), h.identities[:shared]...)
		}
		length = shared
	}
	for i := length; i < len(messages); i++ {
		chain = append(chain, conversation.Extend(chain[i], messages[i].Identity))
		if grown {
			identities = append(identities, messages[i].Identity)
		}
	}
	if grown {
		h.identities, h.chain = identities, chain
	}
	return chain[: len(messages)+1 : len(messages)+1], grown
}
