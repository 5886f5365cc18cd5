package session

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

const (
	// historyMemory bounds the memory of remembered histories, in bytes.
	historyMemory = 32 << 20
	// shortHistory is the length in messages below which a history's links are not remembered.
	shortHistory = 32
)

// history is the longest recent history with a certain beginning. A client sends all of it again with every
// request, and the links of the earlier messages stay the same.
type history struct {
	mu         sync.Mutex
	identities []conversation.Hash
	chain      []conversation.Hash // one more
}

// weight is the history's approximate size in memory, in bytes.
func (h *history) weight() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return uint32(200 + 64*cap(h.chain)) //nolint:gosec // a list has at most wire.MaxElements
}

// Chain is like the function Chain, but reuses the links that a request shares with an earlier one. The links
// belong to the resolver and must not be changed.
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

// links returns the links of messages that begin as the history does, and reports whether the history has
// grown.
func (h *history) links(messages []conversation.Digest) (chain []conversation.Hash, grown bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	shared, length := 0, len(h.identities)
	for shared < min(length, len(messages)) && h.identities[shared] == messages[shared].Identity {
		shared++
	}
	grown = len(messages) > length
	identities, chain := h.identities, h.chain
	if shared < min(length, len(messages)) { // earlier callers still read the rest
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

// MaxInstructions bounds the instructions of an Order, in characters.
const MaxInstructions = 2000

// Order asks for an epoch at a lane's next request, regardless of the prompt's size.
type Order struct {
	At           time.Time // zero without a request
	By           uuid.UUID // member or API key
	Instructions string    // what to keep or leave out; "" if unspecified
}

// Order returns the order for the lane's next epoch, or nil. An order waits until an epoch has been made or
// an attempt has failed.
func (l *Lane) Order() *Order {
	if l.compacted.order.At.IsZero() || l.compacted.order.At.Before(l.Attempts().At) {
		return nil
	}
	if n := len(l.compacted.projections); n > 0 && !l.compacted.projections[n-1].At.Before(l.compacted.order.At) {
		return nil
	}
	return &l.compacted.order
}
