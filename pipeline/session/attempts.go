package session

import (
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
