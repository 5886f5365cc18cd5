package session

import "time"

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

// Attempts returns what the lane remembers of attempts at an epoch.
func (l *Lane) Attempts() Attempts {
	l.progress.Lock()
	defer l.progress.Unlock()
	return l.attempts
}

// Tried remembers how an attempt at an epoch ended.
func (l *Lane) Tried(attempts Attempts) {
	l.progress.Lock()
	defer l.progress.Unlock()
	if attempts.At.Before(l.attempts.At) {
		return // it has been reset meanwhile
	}
	l.attempts = attempts
}
