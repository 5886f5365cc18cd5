package session

import (
	"sync"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Lane is one line of history inside a session, as this process knows it. Its
// lock is held from Resolve until the request's projection is decided, so that
// of two concurrent requests only one ends an epoch.
type Lane struct {
	Session   uuid.UUID
	ID        uuid.UUID
	Parent    uuid.UUID // lane this one forked from; uuid.Nil: none
	ForkAt    int       // messages shared with Parent
	Inherited int       // number of the newest projection taken over from Parent; 0: none
	Name      string    // the client's own session id; empty: recognised by content
	Source    string    // where it came from
	IsNew     bool      // nothing of the lane has been stored yet

	mu          sync.Mutex
	tip         int          // messages of the newest request
	archived    int          // messages known to be durable, without a gap from 0
	projections []Projection // oldest first
	anchor      Anchor
}

// Anchor is the size of a prompt of the lane as the provider reported it.
type Anchor struct {
	Position   int    // messages of the client's list in that prompt
	Projection int    // number of the projection in it; 0: none
	Fixed      int    // o200k tokens of what preceded the messages
	Model      string // who counted
	Tokens     int    // size of the prompt; 0: no anchor
}

// Projection returns the newest projection that stands for a prefix of the
// history whose links chain holds; nil if none does.
func (l *Lane) Projection(chain []conversation.Hash) *Projection {
	for i := len(l.projections) - 1; i >= 0; i-- {
		projection := &l.projections[i]
		if projection.Covers < len(chain) && chain[projection.Covers] == projection.Chain {
			return projection
		}
	}
	return nil
}

// NextNumber returns the number of the lane's next projection.
func (l *Lane) NextNumber() int {
	if len(l.projections) == 0 {
		return 1
	}
	return l.projections[len(l.projections)-1].Number + 1
}

// Adopt makes a committed projection the lane's newest.
func (l *Lane) Adopt(projection Projection) { l.projections = append(l.projections, projection) }

// LastAnchor returns the newest size that the provider reported for the model.
func (l *Lane) LastAnchor(model string) Anchor {
	if l.anchor.Model != model {
		return Anchor{}
	}
	return l.anchor
}

// Unlock ends the request's turn with the lane.
func (l *Lane) Unlock() { l.mu.Unlock() }

// Reported remembers the size of a prompt as the provider reported it.
func (l *Lane) Reported(anchor Anchor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if anchor.Position >= l.anchor.Position || anchor.Model != l.anchor.Model {
		l.anchor = anchor
	}
}

// Archived returns how many messages of the lane are known to be durable. The
// caller holds the lane.
func (l *Lane) Archived() int { return l.archived }

// MarkArchived notes that the lane's first messages are durable.
func (l *Lane) MarkArchived(messages int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markArchived(messages)
}

// MarkArchivedHeld is MarkArchived for the request that holds the lane.
func (l *Lane) MarkArchivedHeld(messages int) { l.markArchived(messages) }

func (l *Lane) markArchived(messages int) {
	l.IsNew = false
	l.archived = max(l.archived, messages)
}

// fork returns a lane that shares the first messages of this one.
func (l *Lane) fork(at int) *Lane {
	fork := &Lane{Session: l.Session, Parent: l.ID, ForkAt: at, Name: l.Name, Source: l.Source, IsNew: true}
	for _, projection := range l.projections {
		if projection.Covers <= at {
			fork.projections = append(fork.projections, projection)
			fork.Inherited = projection.Number
		}
	}
	if l.anchor.Position <= at {
		fork.anchor = l.anchor
	}
	return fork
}

// weight is what the lane takes in memory, in bytes, roughly.
func (l *Lane) weight() uint32 {
	bytes := 512
	for _, projection := range l.projections {
		for _, part := range projection.Parts {
			bytes += 96 + len(part.Raw)
		}
	}
	return uint32(min(bytes, 1<<30))
}
