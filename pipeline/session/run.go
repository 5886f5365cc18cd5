package session

import (
	"slices"
	"sync"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// knownMarkers is how many summaries of a client's own a Run remembers.
const knownMarkers = 16

// Run is what is remembered of a client run, or of one agent in it, about the
// times its client compacted itself. Its zero value remembers nothing yet.
type Run struct {
	mu      sync.Mutex
	windows int
	asked   bool
	markers []conversation.Hash

	lane     uuid.UUID // of the newest request that carried the conversation on, or asked for its summary
	messages int       // of it
}

// Compaction is what a request says, or an earlier one has said, about its client
// having compacted itself.
type Compaction struct {
	Windows int  // one more than the number of the client's context window; 0: it counts none
	Asked   bool // the request asks for a summary

	// Marker identifies the message that holds a summary; the zero Hash: none does.
	Marker conversation.Hash
}

// Note remembers what a request says and returns what was known before it: the
// highest number of Windows, whether the request before has Asked, and Marker if
// that was met already.
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

// Run returns what is remembered of the run that a hint names. Without a name of the client's
// own what is returned is new.
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

// Went notes that a request of the run, with so many messages, went to a lane, and
// returns where the request before went. With uuid.Nil it only tells.
func (r *Run) Went(lane uuid.UUID, messages int) (before uuid.UUID, had int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, had = r.lane, r.messages
	if lane != uuid.Nil {
		r.lane, r.messages = lane, messages
	}
	return before, had
}
