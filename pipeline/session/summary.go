package session

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Summary is what a model has written in place of a lane's first messages. It
// never changes: a later one takes its place.
type Summary struct {
	Covers int               // messages of the client's list that it stands for
	Chain  conversation.Hash // link of the history after those messages
	Text   string
}

// SummaryAttempt is one attempt to have a summary written, as it is kept.
type SummaryAttempt struct {
	Summary // its text is empty if it was rejected

	Session      uuid.UUID
	Lane         uuid.UUID
	Merged       int    // messages that the summary stands for which it goes on from; 0 if none
	Reason       string // why it was rejected; empty: it was accepted
	Version      int    // of the form of its text
	Form         string // how the model was asked: "own" or "cached"
	Model        string // who was asked
	Usage        wire.Usage
	CostMicroUSD int64 // at list prices
	At           time.Time
}

// maxRejected is how many untold rejections a lane remembers.
const maxRejected = 8

// Summary returns the summary that stands for the longest prefix of the history
// whose links chain holds; nil if none does. The caller holds the lane.
func (l *Lane) Summary(chain []conversation.Hash) *Summary {
	var found *Summary
	for i := range l.summaries {
		summary := &l.summaries[i]
		fits := summary.Covers < len(chain) && chain[summary.Covers] == summary.Chain
		if fits && (found == nil || summary.Covers >= found.Covers) {
			found = summary
		}
	}
	return found
}

// TakeRejected returns why summaries of the lane were rejected since it was last
// asked.
func (p *progress) TakeRejected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	rejected := p.rejected
	p.rejected = nil
	return rejected
}

// Summarized gives a lane that is in memory a summary that is durable by now.
func (m *mind) Summarized(lane uuid.UUID, summary Summary) {
	known, ok := m.lanes.Get(lane)
	if !ok {
		return
	}
	known.mu.Lock()
	if !slices.Contains(known.summaries, summary) {
		known.summaries = append(known.summaries, summary)
	}
	known.mu.Unlock()
	m.lanes.Set(lane, known)
}

// SummaryRejected has a lane that is in memory tell of a rejected summary with its
// next exchange.
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

// SummaryChanged notes that the store has a summary of a lane's first messages.
// Unless this process knows it, the lane is read again.
func (n *news) SummaryChanged(lane uuid.UUID, covers int) {
	n.changed(lane, func(known *Lane) bool {
		return slices.ContainsFunc(known.summaries, func(s Summary) bool { return s.Covers == covers })
	})
}
