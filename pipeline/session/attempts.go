package session

import (
	"errors"
	"sync"
	"time"
)

// Patience is how many attempts at an epoch in a row may fail before a lane's breaker opens.
const Patience = 3

// Attempts is a lane's record of failed attempts at an epoch.
type Attempts struct {
	At        time.Time // of the newest attempt or of the reset; zero if there was none
	Fruitless int       // failures in a row
	Reason    string    // why the newest attempt failed; "" unless it did
	Size      int       // the prompt's tokens in the model's count; 0 if the next attempt is not blocked
	Limit     int       // the prompt's limit at that time
}

// IsOpen reports whether the breaker is open. The lane then makes no more epochs ahead of its limit until the
// breaker is reset.
func (a Attempts) IsOpen() bool { return a.Fruitless >= Patience }

// progress is a lane's state on the way to its next epoch. It has its own lock, so that updates never wait
// for the request that holds the lane.
type progress struct {
	mu       sync.Mutex
	attempts Attempts
	plan     *Plan    // of the next epoch; nil if absent
	ahead    *Ahead   // not yet recorded; nil if absent
	rejected []string // reasons of rejected summaries, not yet reported
}

// Attempts returns the lane's record of attempts at an epoch.
func (p *progress) Attempts() Attempts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts
}

// Tried records how an attempt at an epoch ended.
func (p *progress) Tried(attempts Attempts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if attempts.At.Before(p.attempts.At) {
		return // it has been reset meanwhile
	}
	p.attempts = attempts
}

// ErrAway says that a store does not answer or accepts no writes now. Another attempt may succeed.
var ErrAway = errors.New("the store is away")

const (
	firstPause = time.Second // how long requests skip a store that is away
	mostPause  = 8 * time.Second
)

// Outage keeps requests from repeatedly waiting for a store that is away. It is safe for concurrent use.
type Outage struct {
	now func() time.Time

	mu    sync.Mutex
	until time.Time
	pause time.Duration
}

// NewOutage returns the Outage of a store that answers.
func NewOutage(now func() time.Time) *Outage { return &Outage{now: now} }

// Lasts reports whether the store was away a moment ago.
func (a *Outage) Lasts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now().Before(a.until)
}

// Note records the result of a call to the store.
func (a *Outage) Note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	switch {
	case err == nil:
		a.until, a.pause = time.Time{}, 0
	case errors.Is(err, ErrAway) && !now.Before(a.until):
		a.pause = min(max(firstPause, 2*a.pause), mostPause)
		a.until = now.Add(a.pause)
	}
}
