package session

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Summary is a model's summary of a lane's first messages. It never changes: a later one replaces it.
type Summary struct {
	Covers int               // messages of the client's list that it replaces
	Chain  conversation.Hash // link of the history after those messages
	Text   string
}

// SummaryAttempt is a stored attempt to have a summary written.
type SummaryAttempt struct {
	Summary // its text is "" if it was rejected

	Session      uuid.UUID
	Lane         uuid.UUID
	Merged       int    // messages already covered by the summary that it extends; 0 if absent
	Reason       string // why it was rejected; "" if it was accepted
	Version      int    // of the form of its text
	Form         string // how the model was asked: "own" or "cached"
	Model        string // the model that was asked
	Usage        wire.Usage
	CostMicroUSD int64 // at list prices
	At           time.Time
}

// maxRejected is how many unreported rejections a lane remembers.
const maxRejected = 8

// Summary returns the summary of the longest prefix of the history with the links of chain, or nil. The
// caller holds the lane.
func (l *Lane) Summary(chain []conversation.Hash) *Summary {
	var found *Summary
	for i := range l.compacted.summaries {
		summary := &l.compacted.summaries[i]
		fits := summary.Covers < len(chain) && chain[summary.Covers] == summary.Chain
		if fits && (found == nil || summary.Covers >= found.Covers) {
			found = summary
		}
	}
	return found
}

// TakeRejected returns the reasons of the summaries of the lane that were rejected since the last call.
func (p *progress) TakeRejected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	rejected := p.rejected
	p.rejected = nil
	return rejected
}

// Summarized adds a durable summary to a remembered lane.
func (m *mind) Summarized(lane uuid.UUID, summary Summary) {
	known, ok := m.lanes.Get(lane)
	if !ok {
		return
	}
	known.mu.Lock()
	if !slices.Contains(known.compacted.summaries, summary) {
		known.compacted.summaries = append(known.compacted.summaries, summary)
	}
	known.mu.Unlock()
	m.lanes.Set(lane, known)
}

// SummaryRejected notes a rejected summary, so that a remembered lane reports it with its next exchange.
func (m *mind) SummaryRejected(lane uuid.UUID, reason string) {
	known, ok := m.lanes.Get(lane)
	if !ok {
		return
	}
	known.progress.mu.Lock()
	defer known.progress.mu.Unlock()
	if len(known.rejected) < maxRejected {
		known.rejected = append(known.rejected, reason)
	}
}

// SummaryChanged notes that the store has a summary of a lane's first messages. It reloads the lane unless
// this process knows the summary.
func (n *news) SummaryChanged(lane uuid.UUID, covers int) {
	n.changed(lane, func(known *Lane) bool {
		return slices.ContainsFunc(known.compacted.summaries, func(s Summary) bool { return s.Covers == covers })
	})
}
