package cost

import (
	"fmt"

	"github.com/google/uuid"

	"palimpsest/pipeline/localcache"
)

// knownLanes is how many lanes a Tracker remembers, at about 300 bytes each.
const knownLanes = 100_000

// Tracker remembers the newest answered prompt of each lane, and the savings of the lane's projections. It
// belongs to this process, so after a restart it knows a lane only from its next answer on. It is safe for
// concurrent use.
type Tracker struct {
	lanes *localcache.Cache[[16]byte, tracked] // by lane
}

// tracked is the state of a lane.
type tracked struct {
	last    Cached
	balance Balance
	warned  bool // people have been warned that the lane loses money
}

// NewTracker returns an empty Tracker.
func NewTracker() (*Tracker, error) {
	lanes, err := localcache.New[[16]byte](localcache.Options[tracked]{MaximumSize: knownLanes})
	if err != nil {
		return nil, fmt.Errorf("lanes: %w", err)
	}
	return &Tracker{lanes: lanes}, nil
}

// Last returns the newest answered prompt of a lane; known is false if this process has not seen one.
func (b *Tracker) Last(lane uuid.UUID) (last Cached, known bool) {
	page, known := b.lanes.Get(lane)
	return page.last, known && !page.last.At.IsZero()
}

// Balance returns the savings of a lane.
func (b *Tracker) Balance(lane uuid.UUID) Balance {
	page, _ := b.lanes.Get(lane)
	return page.balance
}

// Add records an answered prompt of a lane and the exchange's savings. Answers of concurrent requests may
// arrive in any order, so the prompt sent last counts as the newest.
func (b *Tracker) Add(lane uuid.UUID, answered Cached, net int64) {
	b.lanes.Compute(lane, func(known tracked, found bool) (tracked, bool) {
		if !found || !answered.At.Before(known.last.At) {
			known.last = answered
		}
		known.balance = known.balance.with(answered.Projection, net)
		return known, true
	})
}

// Truncated records that a projection of a lane drops content without a replacement.
func (b *Tracker) Truncated(lane uuid.UUID, projection int) {
	b.lanes.Compute(lane, func(known tracked, _ bool) (tracked, bool) {
		known.balance.Truncated = projection
		return known, true
	})
}

// Warned records whether people are being warned of a lane's loss, and reports whether the warning is new.
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

// patience is the number of exchanges after which a projection must have paid for itself. With default
// settings an epoch pays after about fifteen of the thirty-five or so that it lasts.
const patience = 50

// Balance is the savings of a lane so far, in millionths of a US dollar.
type Balance struct {
	Net        int64 // of all exchanges
	Projection int   // the newest one
	Exchanges  int   // under it
	Earned     int64 // by it
	Unpaid     int   // projections that were replaced before they had paid for themselves
	Truncated  int   // number of the newest projection that drops content without a replacement; 0 if absent
}

// with returns the balance after another exchange.
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

// IsLoss reports whether compression has lost money: the lane has cost more than it saved, and a projection
// did not pay for itself, either before the next one replaced it or within 50 exchanges.
func (b Balance) IsLoss() bool {
	late := b.Projection > 0 && b.Earned < 0 && b.Exchanges >= patience
	return b.Net < 0 && (b.Unpaid > 0 || late)
}
