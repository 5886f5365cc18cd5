package compactionbridge

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// The limits for reading a history. It happens once for each compaction.
const (
	mostMessages = 4000 // the newest ones
	mostKept     = 500  // kept by the client after its summary
	readTimeout  = 2 * time.Second
)

// Lanes finds the lanes that a client used before.
type Lanes interface {
	// Before returns the lane of a session's main conversation that was used last before another
	// one was opened, and how many messages it has. It returns session.ErrNotFound if it does not
	// exist.
	Before(ctx context.Context, workspace tenants.WorkspaceID, session, lane uuid.UUID) (left uuid.UUID, messages int, err error)

	// Holding returns the lane of a main conversation of the scope, other than lane, that holds
	// most of the messages named by their hashes, the most recently used of several. It returns
	// session.ErrNotFound if it does not exist.
	Holding(ctx context.Context, scope session.Scope, lane uuid.UUID, messages []conversation.Hash) (session.LaneMatch, error)
}

// leastKept is how many tokens a lane must share with the messages that a client kept to count as
// the history that it left. Any conversation may contain less than that.
const leastKept = 30

// Past finds the histories that clients left behind. The zero Past finds no history.
type Past struct {
	Lanes     Lanes
	Originals archive.Originals
}

// turn is a turn of the replaced history.
type turn struct {
	first    int // index of its first message
	messages []conversation.Message
}

// history is the conversation that a client left behind.
type history struct {
	turns    []turn
	ledger   *ledger.Ledger
	contents contents
	newest   int // index of the last message
}

// history reads the history that the client of an exchange left. It returns
// session.ErrNotFound if it does not exist.
func (p Past) history(ctx context.Context, exchange *pipeline.View) (*history, error) {
	if p.Originals == nil {
		return nil, session.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	workspace := exchange.Scope.Workspace
	lane, length, err := p.lane(ctx, exchange)
	if err != nil {
		return nil, err
	}
	entries, err := p.Originals.Originals(ctx, workspace, lane, max(0, length-mostMessages), length)
	if err != nil {
		return nil, fmt.Errorf("originals of lane %s: %w", lane, err)
	}
	if len(entries) == 0 {
		return nil, session.ErrNotFound
	}
	return readHistory(&exchange.Conversation, entries)
}

// lane returns the lane that the client left and how many messages count. Only this process knows
// the lane of an agent inside the session.
func (p Past) lane(ctx context.Context, exchange *pipeline.View) (uuid.UUID, int, error) {
	left := exchange.Lane.Left
	switch {
	case left.From != uuid.Nil:
		return left.From, left.Messages, nil
	case p.Lanes == nil || left.Kind != session.Main:
		return uuid.Nil, 0, session.ErrNotFound
	case left.Unnamed && configOf(exchange).Scope == pipeline.ScopeSession:
		return uuid.Nil, 0, session.ErrNotFound
	case left.Unnamed:
		held, err := p.Lanes.Holding(ctx, exchange.Scope, left.Lane, kept(exchange))
		if err == nil && held.Tokens < leastKept {
			err = session.ErrNotFound
		}
		return held.Lane, held.Messages, err
	}
	lane, length, err := p.Lanes.Before(ctx, exchange.Scope.Workspace, left.Session, left.Lane)
	if err != nil {
		return uuid.Nil, 0, fmt.Errorf("lane before %s: %w", left.Lane, err)
	}
	return lane, length, nil
}

// kept returns the hashes of the messages that the client kept after its summary.
func kept(exchange *pipeline.View) []conversation.Hash {
	from := min(exchange.Class.Marker.Boundary+1, len(exchange.Conversation.Digests))
	hashes := make([]conversation.Hash, min(len(exchange.Conversation.Digests)-from, mostKept))
	for i := range hashes {
		hashes[i] = exchange.Conversation.KeptHash(from + i)
	}
	return hashes
}

// readHistory reads archived messages. One that cannot be read is left out.
func readHistory(asked *pipeline.Conversation, entries []archive.Entry) (*history, error) {
	messages := make([]conversation.Message, 0, len(entries))
	indexes := make([]int, 0, len(entries))
	for _, entry := range entries {
		message, err := asked.Read(entry.Raw)
		if err != nil {
			continue
		}
		messages, indexes = append(messages, message), append(indexes, entry.Index)
	}
	if len(messages) == 0 {
		return nil, session.ErrNotFound
	}
	return historyOf(messages, indexes), nil
}

// historyOf returns the history of messages; indexes are their places in their lane.
func historyOf(messages []conversation.Message, indexes []int) *history {
	read := &history{ledger: ledger.New()}
	digests := make([]conversation.Digest, 0, len(messages))
	for i := range messages {
		digests, read.newest = append(digests, conversation.Digest{Role: messages[i].Role, Flags: messages[i].Flags()}), indexes[i]
	}
	for number, span := range conversation.Turns(digests) {
		read.add(number, turn{first: indexes[span.From], messages: messages[span.From:span.To]})
	}
	return read
}

// add reads the next turn.
func (h *history) add(number int, next turn) {
	h.turns = append(h.turns, next)
	h.ledger.Add(number, next.first, next.messages)
	h.contents.add(next.first, next.messages)
}
