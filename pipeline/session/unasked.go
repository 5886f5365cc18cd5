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
	// findTimeout bounds how long a request waits for the store to look for its lane.
	findTimeout = 2 * time.Second
	// readEnds is how many ends of requests of a lane are read ahead, so that a client may go
	// back a few messages.
	readEnds = 8
)

// End is where a request of a lane ended.
type End struct {
	Head     conversation.Hash
	Position int // messages up to it
}

// ends returns the ends of a lane that lie furthest along, that one first, and no more than most.
type ends func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, most int) ([]End, error)

// Shown is what processes show each other of a lane beside the store.
type Shown struct {
	Projection *Projection // the newest; nil where no newer one is shown
	Inserts    []Insert    // the newest, by number
}

// elsewhere returns what other processes show of a lane, which the store may not have yet. A
// projection that comes before the number that the caller has does not count.
type elsewhere func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, have int) (Shown, error)

// Consult has the resolver ask shown, where the store does not answer, for what other processes show of
// a lane whose newest projection has a number here. It is called before the first request.
func (r *Resolver) Consult(shown func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, have int) (Shown, error)) {
	r.elsewhere = shown
}

// consult brings a lane that the caller holds up to date with what other processes show. Without an answer the lane stays as it is.
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
		if insert.Number == lane.NextInsert() { // without those before it, it would stand in another prompt
			lane.Keep([]Insert{insert})
		}
	}
}

// replace makes a projection the lane's newest, in place of those that have its number or a later
// one.
func (l *Lane) replace(newest Projection) {
	l.projections = slices.DeleteFunc(slices.Clone(l.projections), func(own Projection) bool { return own.Number >= newest.Number })
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
	if ctx.Err() == nil { // else it says nothing about the store
		r.outage.Note(err)
	}
	return lane, met, err
}

// assumedID names the lane of a history that the store cannot be asked about: as the request
// would have named it that opened the lane, if it ended before the first answer. What is recorded
// of it then belongs where it should; otherwise the recorder has the two lanes join.
func assumedID(hint Hint, messages []conversation.Digest, chain []conversation.Hash) uuid.UUID {
	if hint.Kind == Side || hint.Name == "" || !answered(messages) {
		return openingID(hint, messages, chain)
	}
	return named("lane", chain[beginning(messages)-1])
}

// assume notes that the lane was opened without asking the store, which may know it.
func (l *Lane) assume() {
	l.Assumed = true
	l.stale.Store(true)
}

// Compacted notes that a lane of a workspace has a projection with a number in the store, 0 if
// the lane was deleted. A lane that this process does not remember is read now: its next request
// may come here when the store is away.
func (n *news) Compacted(workspace tenants.WorkspaceID, lane uuid.UUID, number int) {
	if number == 0 || n.ends == nil || n.mind.Known(lane) != nil {
		n.Changed(lane, number)
		return
	}
	n.beside(func() { _ = n.readAhead(workspace, lane) }) // its next request asks the store
}

// Active is a lane of a workspace that requests go on with.
type Active struct {
	Workspace tenants.WorkspaceID
	Lane      uuid.UUID
	Number    int       // of its newest projection
	At        time.Time // of its last request
}

// ReadAhead has this process know lanes as they are in the store, one after the other: their next
// requests may come here when that is away. It ends with the store's error, or when ctx ends.
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

// readAhead remembers a lane that no request to this process has asked for.
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
	read.stale.Store(true) // what others have sent since is not known
	read.at.Store(&place{workspace: workspace, head: ends[0].Head})
	for _, end := range ends {
		n.mind.heads.SetIfAbsent(end.Head, head{lane: lane, position: end.Position})
	}
	n.mind.lanes.SetIfAbsent(lane, read)
	return nil
}
