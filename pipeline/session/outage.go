package session

import (
	"errors"
	"sync"
	"time"
)

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
