package session

import (
	"sync"
	"time"
)

// Patience is how many attempts at an epoch in a row may come to nothing before a
// lane's breaker opens.
const Patience = 3

// Attempts is what a lane remembers of attempts at an epoch that came to nothing.
type Attempts struct {
	At        time.Time // of the newest attempt, or of the reset; zero: there was none
	Fruitless int       // that came to nothing, in a row
	Reason    string    // why the newest one came to nothing; empty: it did not
	Size      int       // tokens of its prompt in the model's count; 0 if nothing stands in the way of the next
	Limit     int       // and how many that might have had
}

// IsOpen reports whether the breaker is open: the lane makes no epochs ahead of
// its limit any more until it is reset.
func (a Attempts) IsOpen() bool { return a.Fruitless >= Patience }

// progress is how far a lane has come towards its next epoch. It has a lock of its own: who notes
// it never waits for the request that holds the lane.
type progress struct {
	mu       sync.Mutex
	attempts Attempts
	plan     *Plan    // of the next epoch; nil if none
	ahead    *Ahead   // not yet recorded; nil if nothing
	rejected []string // why summaries were rejected, not yet told
}

// Attempts returns what the lane remembers of attempts at an epoch.
func (p *progress) Attempts() Attempts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts
}

// Tried remembers how an attempt at an epoch ended.
func (p *progress) Tried(attempts Attempts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if attempts.At.Before(p.attempts.At) {
		return // it has been reset meanwhile
	}
	p.attempts = attempts
}
