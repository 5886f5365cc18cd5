package session

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// lock is a mutex with a cancelable wait. Its zero value is unlocked.
type lock struct {
	once  sync.Once
	place chan struct{} // full while the lock is held
}

// acquire takes the lock, unless ctx ends before.
func (l *lock) acquire(ctx context.Context) error {
	select {
	case l.of() <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.of() <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lock takes the lock.
func (l *lock) Lock() { l.of() <- struct{}{} }

// TryLock takes the lock if it is free.
func (l *lock) TryLock() bool {
	select {
	case l.of() <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock gives the lock to the caller that has waited longest.
func (l *lock) Unlock() { <-l.of() }

func (l *lock) of() chan struct{} {
	l.once.Do(func() { l.place = make(chan struct{}, 1) })
	return l.place
}

// Interface guard.
var _ sync.Locker = (*lock)(nil)

// knownMarkers is how many of a client's own summaries a Run remembers.
const knownMarkers = 16

// Run holds the history of compactions of a client run, or of one agent in it. Its zero value is empty.
type Run struct {
	mu      sync.Mutex
	windows int
	asked   bool
	markers []conversation.Hash

	lane     uuid.UUID // of the newest request that continued the conversation or asked for its summary
	messages int       // of that request
}

// Compaction is a request's information on its client's own compaction.
type Compaction struct {
	Windows int  // one more than the number of the client's context window; 0 if it has no number
	Asked   bool // the request asks for a summary

	// Marker identifies the message that holds a summary; the zero Hash if absent.
	Marker conversation.Hash
}

// Note records a request's information and returns the state before it: the highest number of Windows,
// whether the previous request Asked, and Marker if it was known already.
func (r *Run) Note(said Compaction) Compaction {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := Compaction{Windows: r.windows, Asked: r.asked}
	r.windows, r.asked = max(r.windows, said.Windows), said.Asked
	if said.Marker == (conversation.Hash{}) {
		return before
	}
	if slices.Contains(r.markers, said.Marker) {
		before.Marker = said.Marker
		return before
	}
	if len(r.markers) == knownMarkers {
		r.markers = slices.Delete(r.markers, 0, 1)
	}
	r.markers = append(r.markers, said.Marker)
	return before
}

// Run returns the run that a hint names. Without a session name it returns a new one.
func (r *Resolver) Run(scope Scope, hint Hint) *Run {
	if hint.Name == "" {
		return &Run{}
	}
	return r.runs.Compute(root(scope, hint.Name, hint.Lane), func(known *Run, found bool) (*Run, bool) {
		if found {
			return known, false
		}
		return &Run{}, true
	})
}

// Went notes that a request of the run went to a lane with the given number of messages, and returns the same
// for the previous request. With uuid.Nil it only returns it.
func (r *Run) Went(lane uuid.UUID, messages int) (before uuid.UUID, had int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, had = r.lane, r.messages
	if lane != uuid.Nil {
		r.lane, r.messages = lane, messages
	}
	return before, had
}
