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
	// checkTimeout bounds how long a request waits to hear whether a lane that this
	// process remembers has moved on elsewhere. For a stale one it waits up to findTimeout: a
	// prompt without another's compaction loses the cache. Stale is one that changed elsewhere,
	// was read ahead, or whose id is assumed.
	checkTimeout = 500 * time.Millisecond
	// refreshTimeout bounds how long it may take to read what has changed elsewhere, and
	// refreshers how much of it is read at once.
	refreshTimeout = 5 * time.Second
	refreshers     = 4
	// secondLook is after how long a history that nobody knows, though a model has
	// answered in it, is looked for once more: who sent it on may still be writing that.
	secondLook = 100 * time.Millisecond
)

// Share has the resolver work beside others on its store: it tells them of requests by an
// announcer, asks where another may know more, and reads the lanes that others compact by ends,
// which may be nil: it returns the ends of a lane that lie furthest along, that one first, and no
// more than most. It is called before the first request.
func (r *Resolver) Share(announcer *Announcer, ends func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, most int) ([]End, error)) {
	r.shared, r.announcer, r.ends = true, announcer, ends
}

// Heed has the resolver ask the store nothing about lanes that it remembers while that is
// away. It is called before the first request.
func (r *Resolver) Heed(outage *Outage) { r.outage = outage }

// Announce begins to tell the resolvers of other processes of a request of a lane that
// ended with a head.
func (r *Resolver) Announce(update Update) Announced {
	if !update.HasHead() {
		return Announced{}
	}
	return r.announcer.Announce(update)
}

// isBehind reports whether another process may know more of a history than this one, which
// remembers its first met messages by a lane: more than one answer has been given since, or
// a change was told of.
func (r *Resolver) isBehind(lane *Lane, met int, messages []conversation.Digest) bool {
	return r.isStale(lane) || r.shared && answersIn(messages[met:]) > 1
}

func (n *news) isStale(lane *Lane) bool {
	return lane.stale.Load() || lane.heard.Load() != n.missed.Load()
}

// update returns the lane, locked, that a history goes on from after a look at the store,
// and how many messages lie before its head. The caller holds known, which this process
// remembers; it stays as it is while the store does not answer. update returns nil where the
// caller has to look again: it holds no lane then.
func (r *Resolver) update(ctx context.Context, known *Lane, met int, scope Scope, chain []conversation.Hash) (*Lane, int) {
	length := len(chain) - 1
	if r.outage.Lasts() {
		r.consult(ctx, known, scope)
		return known, known.unasked(met, length)
	}
	patience := checkTimeout
	if known.stale.Load() {
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
	if ctx.Err() == nil { // else it says nothing of the store
		r.outage.Note(err)
	}
	switch {
	case err != nil:
		r.consult(ctx, known, scope)
		return known, known.unasked(now, length)
	case found == nil: // what its disk is too full for waits elsewhere
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

// look brings a lane up to date that the caller holds, and returns how many messages of the
// history lie before its head; or it returns another lane that the history goes on from, one
// without an id if the store has deleted it.
func (r *Resolver) look(ctx context.Context, known *Lane, met int, scope Scope, chain []conversation.Hash) (*Found, int, error) {
	missed, stale := r.missed.Load(), r.isStale(known)
	heads := chain[met:]
	if stale { // what was sent while the store failed may not be recorded
		heads = chain[1:]
	}
	now, err := r.store.Stands(ctx, scope.Workspace, heads)
	switch {
	case errors.Is(err, ErrNotFound) && stale && known.Archived() > 0:
		return &Found{}, 0, nil
	case errors.Is(err, ErrNotFound): // it has not been recorded yet
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

// take returns a lane that was found in the store, locked: the one that this process
// remembers, brought up to date, or a new one.
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

// checked notes that the lane is as the store has it, as far as was told by then.
func (l *Lane) checked(missed uint64) {
	l.Assumed = false
	l.stale.Store(false)
	l.heard.Store(missed)
}

// outdate notes that a lane has changed elsewhere: its next request looks at the store. It
// is read now already, so that it is there should the store fail before.
func (n *news) outdate(lane *Lane) {
	lane.stale.Store(true)
	n.beside(func() { n.refresh(lane) })
}

// beside reads what has changed elsewhere beside requests. Of many changes at once it leaves
// some to the requests that need them.
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

// refresh brings a lane up to date, unless that fails; one that was deleted is dropped.
func (n *news) refresh(lane *Lane) {
	at := lane.at.Load()
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
	lane.Unlock()
	n.mind.grown(lane)
}

// grown notes that a lane takes more memory, unless it has been dropped meanwhile.
func (m *mind) grown(lane *Lane) {
	m.lanes.ComputeIfPresent(lane.ID, func(known *Lane) (*Lane, bool) {
		if known != lane {
			return known, false
		}
		return lane, true
	})
}

// place is where a lane is found in the store.
type place struct {
	workspace tenants.WorkspaceID
	head      conversation.Hash
}
