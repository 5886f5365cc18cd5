package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

const (
	// checkTimeout bounds how long a request waits for a check whether a remembered lane has moved on
	// elsewhere. For a stale lane it waits up to findTimeout, because a prompt without another process's
	// compaction loses the cache. A lane is stale if it changed elsewhere, was read ahead, or has an assumed
	// ID.
	checkTimeout = 500 * time.Millisecond
	// refreshTimeout bounds reading a change from elsewhere, and refreshers how many are read in parallel.
	refreshTimeout = 5 * time.Second
	refreshers     = 4
	// secondLook is the delay before an unknown history with a model's answer is looked up again, since the
	// process that forwarded it may still be writing it.
	secondLook = 100 * time.Millisecond
)

// Share configures the resolver for a store shared with other processes. It announces requests with announcer
// and checks lanes for changes by others. It reads lanes compacted by others with ends, which returns no more
// ends of a lane than most, the furthest first. ends may be nil. Call Share before the first request.
func (r *Resolver) Share(announcer *Announcer, ends func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, most int) ([]End, error)) {
	r.shared, r.announcer, r.ends = true, announcer, ends
}

// Heed makes the resolver skip the store for remembered lanes during an outage. Call it before the first
// request.
func (r *Resolver) Heed(outage *Outage) { r.outage = outage }

// Announce begins to notify the resolvers of other processes of a lane's request and its head.
func (r *Resolver) Announce(update Update) Announced {
	if !update.HasHead() {
		return Announced{}
	}
	return r.announcer.Announce(update)
}

// isBehind reports whether another process may know more of a history than this one, which remembers its
// first met messages as lane: if more than one answer follows them, or if a change was announced.
func (r *Resolver) isBehind(lane *Lane, met int, messages []conversation.Digest) bool {
	return r.isStale(lane) || r.shared && answersIn(messages[met:]) > 1
}

func (n *news) isStale(lane *Lane) bool {
	return lane.notices.stale.Load() || lane.notices.heard.Load() != n.missed.Load()
}

// update checks the store and returns the lane, locked, that a history continues, and the number of messages
// before its head. The caller holds known, the lane that this process remembers. It is returned unchanged
// while the store does not answer. If update returns nil, the caller holds no lane and must look again.
func (r *Resolver) update(ctx context.Context, known *Lane, met int, scope Scope, chain []conversation.Hash) (*Lane, int) {
	length := len(chain) - 1
	if r.outage.Lasts() {
		r.consult(ctx, known, scope)
		return known, known.unasked(met, length)
	}
	patience := checkTimeout
	if known.notices.stale.Load() {
		patience = findTimeout
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	panicked := true
	defer func() {
		if panicked { // the request goes on without the lane
			known.Unlock()
		}
	}()
	found, now, err := r.look(asking, known, met, scope, chain)
	panicked = false
	if ctx.Err() == nil { // otherwise the error is not the store's
		r.outage.Note(err)
	}
	switch {
	case err != nil:
		r.consult(ctx, known, scope)
		return known, known.unasked(now, length)
	case found == nil: // its epoch may wait elsewhere because the store's disk is full
		r.consult(ctx, known, scope)
		return known, now
	case found.Lane == uuid.Nil: // it was deleted
		r.lanes.Delete(known.ID)
		known.Unlock()
		return nil, 0
	}
	known.Unlock()
	lane, err := r.take(ctx, found)
	if err != nil {
		return nil, 0
	}
	return lane, found.Match
}

// look updates a lane that the caller holds and returns the number of the history's messages before its head.
// If the history continues another lane, it returns that one, without an id if the store has deleted the
// lane.
func (r *Resolver) look(ctx context.Context, known *Lane, met int, scope Scope, chain []conversation.Hash) (*Found, int, error) {
	missed, stale := r.missed.Load(), r.isStale(known)
	heads := chain[met:]
	if stale { // requests sent while the store failed may not be recorded
		heads = chain[1:]
	}
	now, err := r.store.Stands(ctx, scope.Workspace, heads)
	switch {
	case errors.Is(err, ErrNotFound) && stale && known.Archived() > 0:
		return &Found{}, 0, nil
	case errors.Is(err, ErrNotFound): // not recorded yet
		return nil, met, nil
	case err != nil:
		return nil, met, fmt.Errorf("look for lane %s: %w", known.ID, err)
	case now.Lane == known.ID && known.catchUp(now) && !stale:
		return nil, max(met, now.Match), nil
	}
	found, err := r.store.Find(ctx, scope.Workspace, heads)
	if err != nil {
		return nil, met, fmt.Errorf("read lane %s: %w", now.Lane, err)
	}
	known.checked(missed)
	switch {
	case found.Lane != known.ID && found.Match < met: // this process knows more of the history
		return nil, met, nil
	case found.Lane != known.ID:
		return &found, 0, nil
	}
	known.absorb(&found)
	return nil, max(met, found.Match), nil
}

// take returns a lane found in the store, locked: the remembered lane after an update, or a new one.
func (r *Resolver) take(ctx context.Context, found *Found) (*Lane, error) {
	missed := r.missed.Load()
	known := r.Known(found.Lane)
	if known == nil {
		lane := found.Stored()
		lane.checked(missed)
		lane.mu.Lock()
		return lane, nil
	}
	if err := known.Lock(ctx); err != nil {
		return nil, err
	}
	known.absorb(found)
	known.checked(missed)
	return known, nil
}

// checked notes that the lane matched the store when the resolver had missed that many changes.
func (l *Lane) checked(missed uint64) {
	l.Assumed = false
	l.notices.stale.Store(false)
	l.notices.heard.Store(missed)
}

// outdate marks a lane as changed elsewhere, so that its next request checks the store. It also reads the
// lane now, in case the store fails before that request.
func (n *news) outdate(lane *Lane) {
	lane.notices.stale.Store(true)
	n.beside(func() { n.refresh(lane) })
}

// beside reads changes from elsewhere in the background. If there are too many at once, it leaves some to the
// requests that need them.
func (n *news) beside(read func()) {
	select {
	case n.refreshing <- struct{}{}:
		go func() {
			defer func() { <-n.refreshing }()
			read()
		}()
	default:
	}
}

// refresh updates a lane from the store if possible. It drops a deleted one.
func (n *news) refresh(lane *Lane) {
	at := lane.reached.at.Load()
	if at == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	missed := n.missed.Load()
	found, err := n.store.Find(ctx, at.workspace, []conversation.Hash{at.head})
	if errors.Is(err, ErrNotFound) && lane.Archived() > 0 {
		n.mind.lanes.Delete(lane.ID)
	}
	if err != nil || found.Lane != lane.ID || lane.Lock(ctx) != nil {
		return
	}
	lane.absorb(&found)
	lane.checked(missed)
	n.mind.grown(lane)
	lane.Unlock()
}

// grown updates the weight of a lane that takes more memory, unless it has been dropped meanwhile. The caller
// holds the lane.
func (m *mind) grown(lane *Lane) {
	m.lanes.ComputeIfPresent(lane.ID, func(known *Lane) (*Lane, bool) {
		if known != lane {
			return known, false
		}
		return lane, true
	})
}

// place is a lane's location in the store.
type place struct {
	workspace tenants.WorkspaceID
	head      conversation.Hash
}
