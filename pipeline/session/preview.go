package session

import (
	"context"
	"fmt"

	"palimpsest/pipeline/conversation"
)

// Lock takes the lane again for a request that has released it and decides its projection a second time,
// unless ctx ends before. The caller calls Unlock unless there is an error.
func (l *Lane) Lock(ctx context.Context) error {
	if err := l.mu.acquire(ctx); err != nil {
		return fmt.Errorf("wait for the lane: %w", err)
	}
	return nil
}

// Snapshot is a lane's state for a request that changes nothing.
type Snapshot struct {
	Projection *Projection // see Lane.Projection
	Next       int         // see Lane.NextNumber; 0 without a lane
	Anchor     Anchor      // see Lane.LastAnchor
	Inserts    []Insert    // see Lane.Inserts
}

// Preview returns the state of the lane that Resolve would return, and creates no lane or head. A history
// without a known lane has the zero Snapshot.
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
