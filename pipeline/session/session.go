// Package session tells which session and lane a request belongs to and keeps
// what the model sees of each lane.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// ErrNotFound says that no lane continues the history asked for.
var ErrNotFound = errors.New("no such lane")

// ErrOvertaken says that another replica was first: to end the epoch, to put something
// into the prompt, or to delete the session.
var ErrOvertaken = errors.New("lane was changed elsewhere")

// ErrWarm says that another replica has sent a prompt of the lane, so that the
// provider's cache is alive that was taken to be cold.
var ErrWarm = errors.New("lane was used elsewhere and is warm")

// ReasonIdle is the Reason of an epoch that was made because the provider's cache
// had gone cold.
const ReasonIdle = "idle"

// Projection is what the model sees in place of a lane's first messages. It never
// changes: an epoch makes a new one.
type Projection struct {
	Number int               // 1 for the lane's first epoch
	Covers int               // messages of the client's list that Parts stand for
	Chain  conversation.Hash // link of the history after those messages
	Parts  []Part            // in order, From of the first is 0, To of the last is Covers
	Reason string            // why the epoch happened: "target", "limit", ReasonIdle, …
	Before int               // estimate of the prompt in tokens before the epoch
	After  int               // and after it
	At     time.Time

	// Certificate says what the projection has kept of what must not be lost; nil if nothing
	// was compared.
	Certificate Certificate
}

// Part is a run of messages in its rendered form.
type Part struct {
	From, To int             // messages of the client's list, To excluded
	Level    int             // 0 to 3
	Raw      json.RawMessage // zero, one or more messages, comma-separated; nil: the client's own bytes
	Tokens   int             // o200k tokens of the rendered form; of the originals where Raw is nil
	Messages int             // messages in Raw; To-From where Raw is nil
}

// Join puts so many written messages behind those of the part.
func (p *Part) Join(written json.RawMessage, messages, tokens int) {
	p.Raw = slices.Grow(p.Raw, len(written)+1)
	if len(p.Raw) > 0 {
		p.Raw = append(p.Raw, ',')
	}
	p.Raw = append(p.Raw, written...)
	p.Messages += messages
	p.Tokens += tokens
}

// Scope bounds what a session id or a history can ever match.
type Scope struct {
	Workspace tenants.WorkspaceID
	APIKey    uuid.UUID
	Format    conversation.Format

	// Upstream is the base URL that prompts go to, "" for the provider's own.
	Upstream string `json:",omitempty"`

	// EndUser is whom the application speaks for, as EndUserID names them; "" if it does not
	// say.
	EndUser string `json:",omitempty"`

	// EndUserName is the application's own id of EndUser, where the workspace shows it; "" otherwise. It
	// keeps nothing apart.
	EndUserName string `json:",omitempty"`

	// Project is the request's tag of this name; "" if absent. It keeps nothing apart: only memory with
	// the scope "project" goes by it.
	Project string `json:",omitempty"`
}

// Update is what an exchange adds to its session: the recorder stores it.
type Update struct {
	Scope    Scope
	Session  uuid.UUID
	Lane     uuid.UUID
	Kind     Kind // of Lane; empty: Main
	Ancestry      // of Lane

	Naming

	Title  string // start of the first typed message
	Client string
	Model  string

	At       time.Time
	Heat     CacheState // the lane's newest
	Attempts Attempts   // the lane's
	Ahead    *Ahead     // what its next epoch can be planned from; nil if nothing new

	Messages
	Increment
}

// Messages are what an exchange adds to the history of its lane.
type Messages struct {
	Position int               // messages in the request
	Head     conversation.Hash // link of the history after them
	Entries  []archive.Entry   // messages not yet known to be stored, up to the request's last

	// Links are those of the history before each of Entries and behind the last one; empty
	// where there are no entries.
	Links []conversation.Hash `json:",omitempty"`

	Answer json.RawMessage // kept by its hash alone: it has no place in the lane until the client sends it; optional
}

// Sum returns counts with others added; nil without any. It may change counts.
func Sum(counts, others map[string]int) map[string]int {
	if counts == nil && len(others) > 0 {
		counts = make(map[string]int, len(others))
	}
	for kind, count := range others {
		counts[kind] += count
	}
	return counts
}

// HasHead reports whether the request's end is one that a later request may go on
// from: that of a side call which adds nothing is the conversation's.
func (s *Update) HasHead() bool {
	return s.Position > 0 && (s.Kind != Side || s.ForkAt < s.Position)
}

// Bytes returns how many bytes of messages it holds.
func (s *Update) Bytes() int {
	bytes := len(s.Answer)
	for i := range s.Entries {
		bytes += len(s.Entries[i].Raw)
	}
	return bytes
}

// Found is a stored lane that a history continues.
type Found struct {
	Session uuid.UUID
	Lane    uuid.UUID
	Kind    Kind

	Naming
	Extent

	Heat        CacheState
	Attempts    Attempts
	Projections []Projection // oldest first, with those taken over from the lane it forked from
	Pins        []int        // pinned messages, in order, with those taken over
	Order       Order        // the newest; zero: there was none
	Summaries   []Summary    // accepted ones, oldest first, with those taken over
	Inserts     []Insert     // by number, with those taken over
	Taken       int          // number of the newest insert taken over; 0 if none
	IsFork      bool         // it forked from another lane
	Plan        *Plan        // of the next epoch; nil if absent for its last prompt
}

// Extent is how many messages of a stored lane there are.
type Extent struct {
	Match    int // of the history that the lane's head stands for
	Tip      int // of the lane's request that went furthest
	Archived int // in the archive, without a gap from 0
}

// Store keeps sessions, lanes and projections.
type Store interface {
	// Commit stores the session, lane and entries of the update together with a new
	// projection of its lane, in one transaction that is durable when it returns.
	// It returns ErrOvertaken if a projection with that number exists, or if messages
	// that it stands for are not in the archive, and ErrWarm if the projection's reason
	// is ReasonIdle and a prompt of the lane is known whose cache was alive at the time
	// of the update.
	Commit(ctx context.Context, update Update, projection Projection) error

	// Inject stores the session, lane and entries of the update together with new inserts
	// of its lane, in one transaction that is durable when it returns. It returns
	// ErrOvertaken if an insert with the number of one of them exists.
	Inject(ctx context.Context, update Update, inserts []Insert) error

	// Withdraw removes a lane's own inserts from a number on.
	Withdraw(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from int) error

	// Record stores what exchanges of one workspace added, in order. An exchange that does
	// not continue its lane, because another process has recorded other messages there, is
	// stored in a fork of it; its update names the fork then.
	Record(ctx context.Context, tenant tenants.Tenant, updates []Update) error

	// Announce has all processes find lanes by the ends of requests that are not
	// recorded yet. Of each update it keeps the session, the lane and the head.
	Announce(ctx context.Context, workspace tenants.WorkspaceID, updates []Update) error

	// Find returns the lane with a head among heads that lies furthest along;
	// heads lie in the order of the history. It returns ErrNotFound if none does.
	Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (Found, error)

	// Stands returns, of the lane that Find would, what tells whether it has moved on.
	Stands(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (Standing, error)
}
