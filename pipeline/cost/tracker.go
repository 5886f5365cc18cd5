package cost

import (
	"fmt"

	"github.com/google/uuid"

	"palimpsest/pipeline/localcache"
)

// knownLanes bounds how many lanes a Tracker remembers, at about 300 bytes each.
const knownLanes = 100_000

// Tracker remembers of each lane the newest prompt that a provider answered, and what
// the lane's projections have earned. It is of this process alone: after a start it
// knows nothing of a lane until its next answer. It is safe for concurrent use.
type Tracker struct {
	lanes *localcache.Cache[[16]byte, tracked] // by lane
}

// tracked is what is remembered of a lane.
type tracked struct {
	last    Cached
	balance Balance
	warned  bool // people know that the lane loses money
}

// NewTracker returns an empty Tracker.
func NewTracker() (*Tracker, error) {
	lanes, err := localcache.New[[16]byte](localcache.Options[tracked]{MaximumSize: knownLanes})
	if err != nil {
		return nil, fmt.Errorf("lanes: %w", err)
	}
	return &Tracker{lanes: lanes}, nil
}

// Last returns the newest prompt of a lane that a provider answered; known is false
// if this process has seen none.
func (b *Tracker) Last(lane uuid.UUID) (last Cached, known bool) {
	page, known := b.lanes.Get(lane)
	return page.last, known && !page.last.At.IsZero()
}

// Balance returns what a lane has earned.
func (b *Tracker) Balance(lane uuid.UUID) Balance {
	page, _ := b.lanes.Get(lane)
	return page.balance
}

// Add notes that a provider answered a prompt of a lane, and what the exchange
// earned. Answers of concurrent requests may come in any order: the prompt that was
// sent last is the newest.
func (b *Tracker) Add(lane uuid.UUID, answered Cached, net int64) {
	b.lanes.Compute(lane, func(known tracked, found bool) (tracked, bool) {
		if !found || !answered.At.Before(known.last.At) {
			known.last = answered
		}
		known.balance = known.balance.with(answered.Projection, net)
		return known, true
	})
}

// Truncated notes that a projection of a lane leaves out what nothing stands for.
func (b *Tracker) Truncated(lane uuid.UUID, projection int) {
	b.lanes.Compute(lane, func(known tracked, _ bool) (tracked, bool) {
		known.balance.Truncated = projection
		return known, true
	})
}

// Warned notes whether people are being warned of a lane's loss, and reports whether
// they have not been until now.
func (b *Tracker) Warned(lane uuid.UUID, isLoss bool) (isNew bool) {
	b.lanes.Compute(lane, func(known tracked, _ bool) (tracked, bool) {
		isNew = isLoss && !known.warned
		if known.warned == isLoss {
			return known, false
		}
		known.warned = isLoss
		return known, true
	})
	return isNew
}

// patience is after how many exchanges a projection must have earned what it cost.
// An epoch of the default settings pays after some fifteen of the thirty-five or so
// that it lasts.
const patience = 50

// Balance is what a lane has earned so far, in millionths of a US dollar.
type Balance struct {
	Net        int64 // of all exchanges
	Projection int   // the newest one
	Exchanges  int   // under it
	Earned     int64 // by it
	Unpaid     int   // projections that had not earned what they cost when the next one came
	Truncated  int   // number of the newest projection that leaves out what nothing stands for; 0 if none
}

// with returns the balance after one more exchange.
func (b Balance) with(projection int, net int64) Balance {
	b.Net += net
	switch {
	case projection > b.Projection:
		if b.Projection > 0 && b.Earned < 0 {
			b.Unpaid++
		}
		b.Projection, b.Exchanges, b.Earned = projection, 1, net
	case projection == b.Projection:
		b.Exchanges++
		b.Earned += net
	}
	return b
}

// IsLoss reports whether compression has lost money: the lane has cost more than it
// saved, and a projection came too late to earn what it cost, because the next one
// replaced it before or because it has not after 50 exchanges.
func (b Balance) IsLoss() bool {
	late := b.Projection > 0 && b.Earned < 0 && b.Exchanges >= patience
	return b.Net < 0 && (b.Unpaid > 0 || late)
}
