package session

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// MaxEvents bounds the events of a Timeline.
const MaxEvents = 100

// Timeline is the growth of a lane's prompts from its first request to its newest, with a limited number of
// points.
type Timeline struct {
	Total  int             // requests of the lane that went through the pipeline
	Points []TimelineEntry // evenly spaced, oldest first, including the newest
	Events []TimelineEntry // notable requests with their Report; the newest MaxEvents, oldest first
}

// Totals are the sums of all requests of a session.
type Totals struct {
	Requests     int
	Failed       int // refused by the provider or by Palimpsest
	Misses       int // requests that missed the provider's cache unexpectedly, except first ones
	MissedTokens int64
	CostMicroUSD int64
	Models       []string // by name
}

// TimelineEntry is one request of a lane.
type TimelineEntry struct {
	Number int // of the request in its lane, from 1
	At     time.Time

	PromptSize
	Paid

	Compression  string
	Class        string
	Levels       [4]int // messages at L0 to L3
	MissCause    string
	MissedTokens int
	Projection   int // number of the projection in the prompt; 0 if absent
	NetMicroUSD  int64
	Reach        bool // the client's prompt was too long to be sent, and ours was answered
	Status       int
	AnsweredBy   string // the model that answered, if it differs from the requested one
	Report       []byte // JSON of pipeline.Report; only in Events
}

// Paid is what a request took, in tokens, money and time.
type Paid struct {
	CostMicroUSD int64
	Input        int // uncached
	CacheRead    int
	CacheWrite   int
	Duration     time.Duration
}

// Cached returns the share of the prompt that was read from the provider's cache, as two numbers.
func (p Paid) Cached() (read, whole int64) {
	return int64(p.CacheRead), int64(p.Input + p.CacheRead + p.CacheWrite)
}

// Asked is a request of a lane, by its number of messages: the message at Position is its answer.
type Asked struct {
	ID       uuid.UUID
	Position int
	At       time.Time
	Status   int

	Paid
}

// PromptSize is the size of a prompt with its limits, in tokens.
type PromptSize struct {
	Before int // estimate of the prompt as the client sent it
	After  int // estimate of the prompt as sent
	Window int // maximum by the settings of that time; 0 if unknown
	Target int // compression threshold by the settings of that time; 0 if never, or not recorded
}

// Made counts the inserts and summaries of a workspace's prompts since a moment. Deleted sessions are not
// included.
type Made struct {
	// Inserts counts inserts by module.
	Inserts map[string]int64

	// Summaries were written by a model. Rejected ones were not used.
	Summaries, Rejected int64
}

// Left describes the history that a request has left behind: its client continues the named session with
// another history, or without a name continues from its own summary. The zero Left means that no history was
// left.
type Left struct {
	Session uuid.UUID // of the request
	Lane    uuid.UUID // of the request; uuid.Nil if no history was left
	Kind    Kind      // of that lane

	// From is the lane that was left, used by the run's newest request before this one. It is uuid.Nil if
	// this process has not seen it, but the store may know it.
	From uuid.UUID

	// Unnamed says that the client names no session. The history belongs to another session, recognized by
	// the messages that the client has kept.
	Unnamed bool

	// Messages is how many messages of From the client had; 0 if unknown.
	Messages int
}

// Found reports whether a history was left.
func (l Left) Found() bool { return l.Lane != uuid.Nil }

// Before returns the most recently used lane of a session's main conversation before another one was opened,
// and its length in messages. It returns ErrNotFound if there is no such lane.
func (m *Memory) Before(_ context.Context, _ tenants.WorkspaceID, session uuid.UUID, lane uuid.UUID) (left uuid.UUID, messages int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var newest *Found
	for id, found := range m.lanes {
		if found.Session != session || id == lane || found.Kind == Subagent || found.Kind == Side {
			continue
		}
		if newest == nil || found.Heat.At.After(newest.Heat.At) {
			newest, left = found, id
		}
	}
	if newest == nil {
		return uuid.Nil, 0, ErrNotFound
	}
	return left, newest.Tip, nil
}

// Holding returns the main lane, other than lane, that holds most of the messages with the given hashes, with
// its length in messages and the tokens of the held ones. A tie goes to the most recently used lane. It
// returns ErrNotFound if there is no such lane.
func (m *Memory) Holding(_ context.Context, _ Scope, lane uuid.UUID, messages []conversation.Hash) (held LaneMatch, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var newest *Found
	for id, found := range m.lanes {
		if id == lane || found.Kind == Subagent || found.Kind == Side {
			continue
		}
		tokens := 0
		for _, entry := range m.kept[id] {
			if slices.Contains(messages, entry.Hash) {
				tokens += entry.Tokens
			}
		}
		if tokens > held.Tokens || tokens > 0 && tokens == held.Tokens && found.Heat.At.After(newest.Heat.At) {
			newest, held = found, LaneMatch{Lane: id, Messages: found.Tip, Tokens: tokens}
		}
	}
	if newest == nil {
		return LaneMatch{}, ErrNotFound
	}
	return held, nil
}

// LaneMatch is a lane that holds certain messages.
type LaneMatch struct {
	Lane     uuid.UUID
	Messages int // of the whole lane
	Tokens   int // of the matching messages, in o200k
}

// MemoryArchive reads the originals that a Memory keeps.
type MemoryArchive struct{ *Memory }

// Originals returns the stored messages of a lane from index from to to (excluded), in order.
func (m MemoryArchive) Originals(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID, from, to int) ([]archive.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var entries []archive.Entry
	for index, entry := range m.kept[lane] {
		if index >= from && index < to {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b archive.Entry) int { return a.Index - b.Index })
	return entries, nil
}
