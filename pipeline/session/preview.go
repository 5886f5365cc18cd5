package session

import (
	"context"
	"fmt"

	"palimpsest/pipeline/conversation"
)

// Lock takes the lane for a request that has let it go and decides its projection
// once more, unless ctx ends before. The caller calls Unlock unless there is an error.
func (l *Lane) Lock(ctx context.Context) error {
	if err := l.mu.acquire(ctx); err != nil {
		return fmt.Errorf("wait for the lane: %w", err)
	}
	return nil
}

// Snapshot is what a lane shows to a request that leaves no trace.
type Snapshot struct {
	Projection *Projection // as Lane.Projection returns it
	Next       int         // as Lane.NextNumber returns it; 0 if there is no lane
	Anchor     Anchor      // as Lane.LastAnchor returns it
	Inserts    []Insert    // as Lane.Inserts returns it
}

// Preview returns what Resolve's lane would show to a request, and changes nothing:
// no lane, no head. A history that continues none shows the zero Snapshot.
func (r *Resolver) Preview(ctx context.Context, scope Scope, messages []conversation.Digest, chain []conversation.Hash, model string) (Snapshot, error) {
	lane, met, err := r.find(ctx, scope, messages, chain)
	if err != nil || lane == nil {
		return Snapshot{}, err
	}
	defer lane.Unlock()
	seen := lane
	if met < lane.tip && met < len(messages) {
		seen = lane.fork(met)
	}
	glance := Snapshot{Next: seen.NextNumber(), Anchor: seen.LastAnchor(model), Inserts: seen.Inserts(chain)}
	if projection := seen.Projection(chain); projection != nil {
		copied := *projection // the lane goes on
		glance.Projection = &copied
	}
	return glance, nil
}
