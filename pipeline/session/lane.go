package session

import (
	"sync/atomic"
	"time"
	"weak"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Kind says what a lane is.
type Kind string

// The kinds of lanes.
const (
	Main     Kind = "main"
	Subagent Kind = "subagent"
	Side     Kind = "side" // of calls that are no part of the conversation: for a title, a summary, …
)

// Lane is one line of history inside a session, as this process knows it. Its
// lock is held from Resolve until the request's projection is decided, so that
// of two concurrent requests only one ends an epoch; the other waits as long as its
// context lets it.
type Lane struct {
	Session uuid.UUID
	ID      uuid.UUID
	Kind    Kind
	Assumed bool // opened while the store was away, which may know the lane

	Ancestry
	Naming

	mu     lock
	warmth cacheState
	trunk  weak.Pointer[Lane] // what a side call forked from

	reached   // how far its requests have come
	compacted // what stands for its messages
	notices   // what it has heard of other processes

	*durability // how far its messages have come on their way into the archive

	progress // towards its next epoch
	inserted // what modules have put into its prompt
}

// Ancestry says where a lane comes from. Its zero value is that of a lane that forked from none.
type Ancestry struct {
	Parent    uuid.UUID // lane that this one forked from, or carries on as another client's; uuid.Nil if none
	ForkAt    int       // messages shared with Parent, whose entries in the archive count as its own; 0 if it carries Parent on
	Inherited int       // number of the newest projection taken over from Parent; 0 if none
	Taken     int       // number of the newest insert taken over from Parent; 0 if none
}

// Naming is how a session was recognized.
type Naming struct {
	Name   string // the client's own session id; empty: recognized by content
	Source string // where it came from: "header", "metadata.user_id", …, "lineage"
}

// reached is how far the requests of a lane have come.
type reached struct {
	isFork bool // it was read from the store, which has a Parent of it

	tip    int                   // messages of the request that went furthest
	served int                   // messages of the request to this process that went furthest
	anchor Anchor                // the newest size that the provider reported
	at     atomic.Pointer[place] // where its newest request ended; nil: nowhere yet
}

// compacted is what stands for messages of a lane in its prompts, and what its next epoch
// has to respect.
type compacted struct {
	projections []Projection // oldest first
	summaries   []Summary    // oldest first
	pins        []int        // messages whose turns stay as they are, in order
	order       Order        // the newest, carried out or not
}

// notices are what a lane has heard of other processes.
type notices struct {
	stale atomic.Bool   // it has changed in the store
	heard atomic.Uint64 // how often the resolver had missed changes when the lane was as the store has it
}

// Anchor is the size of a prompt of the lane as the provider reported it.
type Anchor struct {
	Position   int    // messages of the client's list in that prompt
	Projection int    // number of the projection in it; 0 if none
	Fixed      int    // o200k tokens of what preceded the messages
	Model      string // who counted
	Tokens     int    // size of the prompt; 0: no anchor
	Inserted   int    // o200k tokens of the inserts in that prompt
}

// ContinueFrom notes that a lane which has just begun carries on a lane of another history, of which it
// shares no message. It does nothing for a lane that forked.
func (l *Lane) ContinueFrom(lane uuid.UUID) {
	if l.Parent == uuid.Nil && !l.isFork && l.Kind == Main {
		l.Parent = lane
	}
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
func (l *Lane) Adopt(projection Projection) {
	l.projections = append(l.projections, projection)
	l.PlanAhead(nil)
}

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

// Update returns what an exchange adds to its session before anything of its
// messages: where it belongs. A side call says nothing of the session's model.
func (l *Lane) Update(scope Scope, model string, at time.Time) Update {
	update := l.Place(scope, at)
	update.Heat, update.Attempts, update.Ahead = l.Heat(), l.Attempts(), l.takeAhead()
	if l.Kind != Side {
		update.Model = model
	}
	return update
}

// Place returns an Update without what has become of the lane.
func (l *Lane) Place(scope Scope, at time.Time) Update {
	return Update{
		Scope: scope, Session: l.Session, Lane: l.ID, Kind: l.Kind,
		Ancestry: l.Ancestry, Naming: l.Naming, At: at,
	}
}

// fork returns a lane that shares the first messages of this one, and with them
// what the archive holds of them.
func (l *Lane) fork(at int) *Lane {
	fork := &Lane{
		Session: l.Session, Ancestry: Ancestry{Parent: l.ID, ForkAt: at}, Naming: l.Naming, Kind: l.Kind, durability: l.durability.fork(at),
	}
	fork.pins = pinsBefore(l.pins, at)
	fork.attempts = l.Attempts()
	for _, projection := range l.projections {
		if projection.Covers <= at {
			fork.projections = append(fork.projections, projection)
			fork.Inherited = projection.Number
		}
	}
	for _, summary := range l.summaries {
		if summary.Covers <= at {
			fork.summaries = append(fork.summaries, summary)
		}
	}
	fork.inherit(l, at)
	if l.Parent != uuid.Nil && at <= l.ForkAt && fork.Inherited <= l.Inherited && fork.Taken <= l.Taken {
		fork.Parent = l.Parent // all that is shared is its own; lines of descent stay short
	}
	if l.anchor.Position <= at {
		fork.anchor = l.anchor
	}
	fork.warmth.inherit(&l.warmth, at, fork.Inherited)
	return fork
}

// weight is what the lane takes in memory, in bytes, roughly.
func (l *Lane) weight() uint32 {
	bytes := 768
	if plan := l.Plan(); plan != nil {
		bytes += plan.Projection.weight()
	}
	for _, projection := range l.projections {
		if projection.Number <= l.Inherited {
			continue // the parent's memory
		}
		bytes += projection.weight()
	}
	for i := range l.inserts {
		if l.inserts[i].Number > l.Taken {
			bytes += l.inserts[i].weight()
		}
	}
	for _, summary := range l.summaries {
		bytes += 96 + len(summary.Text)
	}
	return uint32(min(bytes, 1<<30))
}

// weight is what the projection takes in memory, in bytes, roughly.
func (p *Projection) weight() int {
	bytes := 0
	for _, part := range p.Parts {
		bytes += 96 + len(part.Raw)
	}
	return bytes
}
