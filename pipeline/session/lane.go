package session

import (
	"slices"
	"sync/atomic"
	"time"
	"weak"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Kind is the kind of a lane.
type Kind string

// The kinds of lanes.
const (
	Main     Kind = "main"
	Subagent Kind = "subagent"
	Side     Kind = "side" // calls outside the conversation: for a title, a summary, …
)

// Lane is one line of history inside a session, as this process knows it. A request holds its lock from
// Resolve until its projection is decided, so that only one of two concurrent requests ends an epoch. The
// other one waits as long as its context allows.
type Lane struct {
	Session uuid.UUID
	ID      uuid.UUID
	Kind    Kind
	Assumed bool // opened during an outage of the store, which may know the lane

	Ancestry Ancestry
	Naming

	mu     lock
	warmth cacheState
	trunk  weak.Pointer[Lane] // lane that a side call forked from

	reached   reached   // progress of its requests
	compacted compacted // replacements of its messages
	notices   notices   // changes by other processes

	*durability // progress of its messages into the archive

	progress // progress towards its next epoch
	inserted // inserts of its prompt
}

// Ancestry is the origin of a lane. The zero value belongs to a lane that did not fork.
type Ancestry struct {
	Parent    uuid.UUID // lane that this one forked from, or whose conversation it continues for another client; uuid.Nil if absent
	ForkAt    int       // messages shared with Parent, including their archive entries; 0 if it continues Parent
	Inherited int       // number of the newest projection taken over from Parent; 0 if absent
	Taken     int       // number of the newest insert taken over from Parent; 0 if absent
}

// Naming is how a session was recognized.
type Naming struct {
	Name   string // the client's own session id; "" if recognized by content
	Source string // source of the name: "header", "metadata.user_id", …, "lineage"
}

// reached is the progress of a lane's requests.
type reached struct {
	isFork bool // read from the store, where it has a Parent

	tip    int                   // messages of the longest request
	served int                   // messages of the longest request to this process
	anchor Anchor                // the newest size reported by the provider
	at     atomic.Pointer[place] // end of its newest request; nil before the first
}

// compacted holds the replacements of a lane's messages in its prompts, and the constraints on its next
// epoch.
type compacted struct {
	projections []Projection // oldest first
	summaries   []Summary    // oldest first
	pins        []int        // messages whose turns stay unchanged, in order
	pinned      bool         // the whole session is pinned
	order       Order        // the newest, carried out or not
}

// notices are a lane's news from other processes.
type notices struct {
	stale atomic.Bool   // the lane has changed in the store
	heard atomic.Uint64 // the resolver's count of missed changes when the lane last matched the store
}

// Anchor is the size of a prompt of the lane as reported by the provider.
type Anchor struct {
	Position   int    // messages of the client's list in that prompt
	Projection int    // number of the projection in it; 0 if absent
	Replaced   int    // o200k tokens of that projection, because two processes may give different ones the same number
	Fixed      int    // o200k tokens before the messages
	Model      string // the model that counted
	Tokens     int    // size of the prompt; 0 without an anchor
	Inserted   int    // o200k tokens of the inserts in that prompt
}

// ContinueFrom notes that a new lane continues the conversation of another lane without sharing its messages.
// It does nothing for a fork.
func (l *Lane) ContinueFrom(lane uuid.UUID) {
	if l.Ancestry.Parent == uuid.Nil && !l.reached.isFork && l.Kind == Main {
		l.Ancestry.Parent = lane
	}
}

// Projection returns the newest projection that applies to the history with the links of chain, or nil.
func (l *Lane) Projection(chain []conversation.Hash) *Projection {
	for i := len(l.compacted.projections) - 1; i >= 0; i-- {
		projection := &l.compacted.projections[i]
		if projection.Covers < len(chain) && chain[projection.Covers] == projection.Chain {
			return projection
		}
	}
	return nil
}

// NextNumber returns the number of the lane's next projection.
func (l *Lane) NextNumber() int {
	if len(l.compacted.projections) == 0 {
		return 1
	}
	return l.compacted.projections[len(l.compacted.projections)-1].Number + 1
}

// Adopt makes a committed projection the lane's newest.
func (l *Lane) Adopt(projection Projection) {
	l.compacted.projections = append(l.compacted.projections, projection)
	l.PlanAhead(nil)
}

// LastAnchor returns the newest size that the provider reported for the model.
func (l *Lane) LastAnchor(model string) Anchor {
	if l.reached.anchor.Model != model {
		return Anchor{}
	}
	return l.reached.anchor
}

// Unlock releases the lane for other requests.
func (l *Lane) Unlock() { l.mu.Unlock() }

// Reported remembers the size of a prompt as the provider reported it.
func (l *Lane) Reported(anchor Anchor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if anchor.Position >= l.reached.anchor.Position || anchor.Model != l.reached.anchor.Model {
		l.reached.anchor = anchor
	}
}

// Update returns an exchange's update without its messages: its place and the lane's state. A side call
// leaves the session's model unset.
func (l *Lane) Update(scope Scope, model string, at time.Time) Update {
	update := l.Place(scope, at)
	update.Heat, update.Attempts, update.Ahead = l.Heat(), l.Attempts(), l.takeAhead()
	if l.Kind != Side {
		update.Model = model
	}
	return update
}

// Place returns an Update without the lane's state.
func (l *Lane) Place(scope Scope, at time.Time) Update {
	return Update{
		Scope: scope, Session: l.Session, Lane: l.ID, Kind: l.Kind,
		Ancestry: l.Ancestry, Naming: l.Naming, At: at,
	}
}

// fork returns a lane that shares the first messages of this one and their archive entries.
func (l *Lane) fork(at int) *Lane {
	fork := &Lane{
		Session: l.Session, Ancestry: Ancestry{Parent: l.ID, ForkAt: at}, Naming: l.Naming, Kind: l.Kind, durability: l.durability.fork(at),
	}
	fork.compacted.pins, fork.compacted.pinned = pinsBefore(l.compacted.pins, at), l.compacted.pinned
	fork.attempts = l.Attempts()
	for _, projection := range l.compacted.projections {
		if projection.Covers <= at {
			fork.compacted.projections = append(fork.compacted.projections, projection)
			fork.Ancestry.Inherited = projection.Number
		}
	}
	for _, summary := range l.compacted.summaries {
		if summary.Covers <= at {
			fork.compacted.summaries = append(fork.compacted.summaries, summary)
		}
	}
	fork.inherit(l, at)
	if l.Ancestry.Parent != uuid.Nil && at <= l.Ancestry.ForkAt && fork.Ancestry.Inherited <= l.Ancestry.Inherited && fork.Ancestry.Taken <= l.Ancestry.Taken {
		fork.Ancestry.Parent = l.Ancestry.Parent // its parent has all shared messages; this keeps lines of descent short
	}
	if l.reached.anchor.Position <= at {
		fork.reached.anchor = l.reached.anchor
	}
	fork.warmth.inherit(&l.warmth, at, fork.Ancestry.Inherited)
	return fork
}

// weight is the lane's approximate size in memory, in bytes.
func (l *Lane) weight() uint32 {
	bytes := 768
	if plan := l.Plan(); plan != nil {
		bytes += plan.Projection.weight()
	}
	for _, projection := range l.compacted.projections {
		if projection.Number <= l.Ancestry.Inherited {
			continue // belongs to the parent's memory
		}
		bytes += projection.weight()
	}
	for i := range l.inserts {
		if l.inserts[i].Number > l.Ancestry.Taken {
			bytes += l.inserts[i].weight()
		}
	}
	for _, summary := range l.compacted.summaries {
		bytes += 96 + len(summary.Text)
	}
	return uint32(min(bytes, 1<<30))
}

// weight is the projection's approximate size in memory, in bytes.
func (p *Projection) weight() int {
	bytes := 0
	for _, part := range p.Parts {
		bytes += 96 + len(part.Raw)
	}
	return bytes
}

// MaxPins bounds how many messages of a lane can be pinned.
const MaxPins = 200

// Pin keeps the turn of a message unchanged in the prompt.
type Pin struct {
	Lane    uuid.UUID // lane of the pin: the lane itself or one that it forked from
	Message int       // place in the client's list
	By      uuid.UUID // member or API key
	At      time.Time
}

// Pins returns the pinned messages of the lane, in order. The caller must not
// change them.
func (l *Lane) Pins() []int { return l.compacted.pins }

// Pinned reports whether the whole session is pinned: its prompts are compacted only by an order.
func (l *Lane) Pinned() bool { return l.compacted.pinned }

// pinsBefore returns the pins of messages before index end.
func pinsBefore(pins []int, end int) []int {
	at, _ := slices.BinarySearch(pins, end)
	return pins[:at:at]
}
