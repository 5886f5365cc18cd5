package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

const (
	// findTimeout bounds how long a request waits for the store to find its lane.
	findTimeout = 2 * time.Second
	// readEnds is how many ends of a lane's requests are read ahead, so that a client may go back a few
	// messages.
	readEnds = 8
)

// End is the end of a lane's request.
type End struct {
	Head     conversation.Hash
	Position int // messages up to it
}

// ends returns no more than most ends of a lane, the furthest first.
type ends func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, most int) ([]End, error)

// Shown is the state of a lane that processes exchange outside the store.
type Shown struct {
	Projection *Projection // the newest; nil if no newer one is offered
	Inserts    []Insert    // the newest, by number
}

// elsewhere returns the state of a lane that other processes offer and that the store may not have yet.
// Projections before the caller's newest number have are ignored.
type elsewhere func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, have int) (Shown, error)

// Consult makes the resolver ask shown if the store does not answer: for the state that other processes offer
// of a lane with have as its newest projection here. Call it before the first request.
func (r *Resolver) Consult(shown func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, have int) (Shown, error)) {
	r.elsewhere = shown
}

// consult updates a lane that the caller holds with the state that other processes offer. Without an answer
// the lane stays unchanged.
func (r *Resolver) consult(ctx context.Context, lane *Lane, scope Scope) {
	if r.elsewhere == nil {
		return
	}
	shown, err := r.elsewhere(ctx, scope.Workspace, lane.ID, lane.NextNumber()-1)
	if err != nil {
		return
	}
	if shown.Projection != nil {
		lane.replace(*shown.Projection)
	}
	for _, insert := range shown.Inserts {
		if insert.Number == lane.NextInsert() { // without the earlier ones, it would belong to another prompt
			lane.Keep([]Insert{insert})
		}
	}
}

// replace makes a projection the lane's newest, in place of those with its number or a later one.
func (l *Lane) replace(newest Projection) {
	l.compacted.projections = slices.DeleteFunc(slices.Clone(l.compacted.projections), func(own Projection) bool { return own.Number >= newest.Number })
	l.Adopt(newest)
}

// lookUp is stored for a request, which does not wait for a store that is away.
func (r *Resolver) lookUp(ctx context.Context, scope Scope, chain []conversation.Hash) (*Lane, int, error) {
	if r.outage.Lasts() {
		return nil, 0, ErrAway
	}
	asking, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	lane, met, err := r.stored(asking, scope, chain)
	if ctx.Err() == nil { // otherwise the error is not the store's
		r.outage.Note(err)
	}
	return lane, met, err
}

// assumedID returns the id of a history's lane while the store is unavailable: the id that the opening
// request would have given the lane if it ended before the first answer. If so, the recorder stores the
// exchange in the right lane. Otherwise it joins the two lanes.
func assumedID(hint Hint, messages []conversation.Digest, chain []conversation.Hash) uuid.UUID {
	if hint.Kind == Side || hint.Name == "" || !answered(messages) {
		return openingID(hint, messages, chain)
	}
	return named("lane", chain[beginning(messages)-1])
}

// assume notes that the lane was opened without the store, which may know it.
func (l *Lane) assume() {
	l.Assumed = true
	l.notices.stale.Store(true)
}

// Compacted notes that a lane of a workspace has a projection with a number in the store, or 0 if the lane
// was deleted. It reads an unknown lane now, because its next request may come here while the store is away.
func (n *news) Compacted(workspace tenants.WorkspaceID, lane uuid.UUID, number int) {
	if number == 0 || n.ends == nil || n.mind.Known(lane) != nil {
		n.Changed(lane, number)
		return
	}
	n.beside(func() { _ = n.readAhead(workspace, lane) }) // on failure, its next request asks the store
}

// Active is a lane of a workspace with recent requests.
type Active struct {
	Workspace tenants.WorkspaceID
	Lane      uuid.UUID
	Number    int       // of its newest projection
	At        time.Time // of its last request
}

// ReadAhead reads lanes from the store, one after the other, because their next requests may come here while
// it is away. It ends with the store's error, or when ctx ends.
func (n *news) ReadAhead(ctx context.Context, lanes []Active) error {
	for _, lane := range lanes {
		if n.mind.Known(lane.Lane) != nil {
			n.Changed(lane.Lane, lane.Number)
			continue
		}
		err := n.readAhead(lane.Workspace, lane.Lane)
		if errors.Is(err, ErrAway) || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}

// readAhead remembers a lane that had no request to this process.
func (n *news) readAhead(workspace tenants.WorkspaceID, lane uuid.UUID) error {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	ends, err := n.ends(ctx, workspace, lane, readEnds)
	if err != nil || len(ends) == 0 {
		return err
	}
	found, err := n.store.Find(ctx, workspace, []conversation.Hash{ends[0].Head})
	if err != nil {
		return err
	}
	if found.Lane != lane {
		return errors.New("the lane has joined another one")
	}
	read := found.Stored()
	read.notices.stale.Store(true) // because requests of other processes since then are unknown
	read.reached.at.Store(&place{workspace: workspace, head: ends[0].Head})
	for _, end := range ends {
		n.mind.heads.SetIfAbsent(end.Head, head{lane: lane, position: end.Position})
	}
	n.mind.lanes.SetIfAbsent(lane, read)
	return nil
}
