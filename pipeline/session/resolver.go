package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"weak"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/localcache"
)

const (
	// laneMemory bounds what projections may take in memory, in bytes.
	laneMemory = 256 << 20
	// knownHeads bounds how many ends of requests are found without the store.
	knownHeads = 200_000
	// knownRuns bounds how many client runs are remembered.
	knownRuns = 20_000
)

// Hint is what a request says about its session.
type Hint struct {
	Name   string // the client's own session id; empty: recognize it by content
	Source string // where Name came from
	Lane   string // the client's own name for a line of history: an agent's id
	Kind   Kind   // of the lane that the request continues or opens; empty: Main

	// Copied says that the client's line of history began as a copy of the session's main one: its
	// lane forks from there, and is looked for there.
	Copied bool
}

// line is the name of the line of history that the request's lane is looked for in.
func (h Hint) line() string {
	if h.Copied {
		return ""
	}
	return h.Lane
}

// Resolver tells which lane a request continues. It remembers lanes and asks the
// store about those it does not know.
type Resolver struct {
	*mind // lanes that it remembers
	*news // of what becomes of them elsewhere

	store     Store
	runs      *localcache.Cache[[32]byte, *Run]     // by the root of their histories
	histories *localcache.Cache[[32]byte, *history] // by their first link
	openings  openings
	*rewritings

	shared    bool       // others work on the same store
	announcer *Announcer // tells them of requests; may be nil
	elsewhere elsewhere  // what they show each other beside it; may be nil
	outage    *Outage    // of the store
}

// mind remembers lanes, and where requests to them ended.
type mind struct {
	lanes *localcache.Cache[[16]byte, *Lane] // by id
	heads *localcache.Cache[[32]byte, head]  // by link
}

// news brings lanes that are remembered up to date when others tell that they have changed.
type news struct {
	store      Store
	mind       *mind
	ends       ends // where lanes that others compact are read; may be nil
	missed     atomic.Uint64
	refreshing chan struct{}
}

// head is the end of an earlier request: the history after it has its link.
type head struct {
	lane     uuid.UUID
	position int
}

// NewResolver returns a Resolver on a store.
func NewResolver(store Store) (*Resolver, error) {
	lanes, err := localcache.New[[16]byte](localcache.Options[*Lane]{
		MaximumWeight: laneMemory,
		Weigher:       (*Lane).weight,
	})
	if err != nil {
		return nil, fmt.Errorf("lanes: %w", err)
	}
	heads, err := localcache.New[[32]byte](localcache.Options[head]{MaximumSize: knownHeads})
	if err != nil {
		return nil, fmt.Errorf("heads: %w", err)
	}
	runs, err := localcache.New[[32]byte](localcache.Options[*Run]{MaximumSize: knownRuns})
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	histories, err := localcache.New[[32]byte](localcache.Options[*history]{
		MaximumWeight: historyMemory,
		Weigher:       (*history).weight,
	})
	if err != nil {
		return nil, fmt.Errorf("histories: %w", err)
	}
	rewritings, err := newRewritings()
	if err != nil {
		return nil, err
	}
	remembers := &mind{lanes: lanes, heads: heads}
	return &Resolver{
		mind: remembers, news: &news{store: store, mind: remembers, refreshing: make(chan struct{}, refreshers)},
		store: store, runs: runs, openings: newOpenings(), histories: histories, rewritings: rewritings, outage: NewOutage(time.Now),
	}, nil
}

// Chain returns the links of a history: element i is the link after i messages.
// Its root holds the scope and what the client says about the session, so that
// nothing else ever shares a link.
func Chain(scope Scope, hint Hint, messages []conversation.Digest) []conversation.Hash {
	chain := make([]conversation.Hash, len(messages)+1)
	chain[0] = root(scope, hint.Name, hint.line())
	for i := range messages {
		chain[i+1] = conversation.Extend(chain[i], messages[i].Identity)
	}
	return chain
}

// Resolve returns the lane that a request continues, or a new one, locked: the
// caller calls Unlock once the request's projection is decided. chain is the
// request's history as Chain returns it. met is how many messages of it an earlier
// request of the session had. A side call never continues a lane of the
// conversation, nor the other way round: it forks from it and leaves it as it is, and so does a line of history
// that began as a copy of the main one. An error means that the
// store failed, or that ctx ended while another request held the lane; the request can go on without one.
// A store that is away is no error: the lane is then one that this process remembers, or one that
// is Assumed.
func (r *Resolver) Resolve(ctx context.Context, scope Scope, hint Hint, messages []conversation.Digest, chain []conversation.Hash) (lane *Lane, met int, err error) {
	for {
		known, met, err := r.hold(ctx, chain)
		if err != nil {
			return nil, 0, err
		}
		if known != nil && r.isBehind(known, met, messages) {
			if known, met = r.update(ctx, known, met, scope, chain); known == nil {
				continue
			}
		}
		if known != nil {
			return r.join(known, met, known.ID, scope, hint, messages, chain), met, nil
		}
		lane, met, err := r.open(ctx, scope, hint, messages, chain)
		if lane != nil || err != nil {
			return lane, met, err
		}
	}
}

// open is Resolve for a history that this process does not remember. Of requests that
// come with it at once, one asks the store and opens its lane; to those that waited for
// it, it returns nil.
func (r *Resolver) open(ctx context.Context, scope Scope, hint Hint, messages []conversation.Digest, chain []conversation.Hash) (*Lane, int, error) {
	opening := r.openings.of(chain[beginning(messages)])
	if err := opening.Acquire(ctx, 1); err != nil {
		return nil, 0, fmt.Errorf("wait for the history's lane: %w", err)
	}
	defer opening.Release(1)
	if known, _ := r.remembered(chain); known != nil {
		return nil, 0, nil
	}
	lane, met, id, err := r.ask(ctx, scope, hint, messages, chain)
	isAway := errors.Is(err, ErrAway)
	if err != nil && !isAway {
		return nil, 0, err
	}
	lane = r.join(lane, met, id, scope, hint, messages, chain)
	if isAway {
		lane.assume()
		r.consult(ctx, lane, scope)
	}
	return lane, met, nil
}

// ask returns the lane, locked, that the store has of a history, and how many messages lie
// before its head. Where the store has no such lane it returns nil and the id of a new one. With
// ErrAway it returns the id that the lane probably has.
func (r *Resolver) ask(ctx context.Context, scope Scope, hint Hint, messages []conversation.Digest, chain []conversation.Hash) (*Lane, int, uuid.UUID, error) {
	isAnswered := answered(messages)
	if !isAnswered && (!r.shared || hint.Name == "") {
		return nil, 0, newID(), nil // the first request of a history continues nothing
	}
	lane, met, err := r.lookUp(ctx, scope, chain)
	if lane == nil && err == nil && isAnswered && r.shared {
		select {
		case <-time.After(secondLook):
		case <-ctx.Done():
		}
		lane, met, err = r.lookUp(ctx, scope, chain)
	}
	if errors.Is(err, ErrAway) {
		return nil, 0, assumedID(hint, messages, chain), err
	}
	if err != nil && !isAnswered {
		return nil, 0, newID(), nil
	}
	return lane, met, openingID(hint, messages, chain), err
}

// join returns the lane, locked and remembered, of a request that goes on from the first
// met messages of a lane that the caller holds; nil: from none, and a new lane gets an id.
func (r *Resolver) join(lane *Lane, met int, id uuid.UUID, scope Scope, hint Hint, messages []conversation.Digest, chain []conversation.Hash) *Lane {
	length := len(messages)
	aside := hint.Kind == Side
	switch {
	case lane == nil:
		lane = begin(id, scope, hint)
		lane.checked(r.missed.Load())
	case met < lane.tip && met < length || aside != (lane.Kind == Side) || hint.Copied && lane.isMain(hint.Kind):
		defer lane.Unlock() // once the other one is remembered: who waits for it finds that
		lane = leave(lane, met, messages, chain, scope, hint)
		lane.checked(r.missed.Load())
	}
	lane.tip, lane.served = max(lane.tip, length), max(lane.served, length)
	r.lanes.Set(lane.ID, lane)
	if !aside || lane.ForkAt < length { // or it is the conversation's
		r.heads.Set(chain[length], head{lane: lane.ID, position: length})
		lane.at.Store(&place{workspace: scope.Workspace, head: chain[length]})
	}
	if length > 1 && !aside && !hint.Copied { // the main line may go on from there, too
		// The same history may come with its newest message said again.
		r.heads.Set(chain[length-1], head{lane: lane.ID, position: length - 1})
	}
	return lane
}

// isMain reports whether a lane is the session's main line, as a copy of that sees it, whose requests are of a
// kind. Where that is the main line's own, what forked from it is the copy.
func (l *Lane) isMain(kind Kind) bool {
	return l.Kind == Main && (cmp.Or(kind, Main) != Main || l.ForkAt == 0 && !l.isFork)
}

// Committed notes that a lane has a new projection and takes more memory.
func (m *mind) Committed(lane *Lane) { m.lanes.Set(lane.ID, lane) }

// Known returns a lane that this process remembers; nil if it does not.
func (m *mind) Known(lane uuid.UUID) *Lane {
	known, _ := m.lanes.Get(lane)
	return known
}

// Planned keeps a plan for a lane's next epoch, which takes more memory with it. It
// does nothing if the lane has been dropped meanwhile. The caller holds the lane.
func (m *mind) Planned(lane *Lane, plan *Plan) {
	m.lanes.ComputeIfPresent(lane.ID, func(known *Lane) (*Lane, bool) {
		if known != lane {
			return known, false
		}
		lane.PlanAhead(plan)
		return lane, true
	})
}

// PlanChanged notes that the store has a plan for a lane's epoch with a number. Unless
// this process has it, the lane is read again.
func (n *news) PlanChanged(lane uuid.UUID, number int) {
	known, ok := n.mind.lanes.Get(lane)
	if !ok {
		return
	}
	if plan := known.Plan(); plan == nil || plan.Projection.Number != number {
		n.outdate(known)
	}
}

// Changed notes that a lane has a projection with a number in the store, 0 if the
// lane was deleted. Unless this process made it, the lane is read again.
func (n *news) Changed(lane uuid.UUID, number int) {
	n.changed(lane, func(known *Lane) bool { return number > 0 && known.NextNumber() > number })
}

// InsertsChanged notes that a lane has inserts up to a number in the store. Unless
// this process put them there, the lane is read again.
func (n *news) InsertsChanged(lane uuid.UUID, number int) {
	n.changed(lane, func(known *Lane) bool { return known.NextInsert() > number })
}

// changed has a lane read again that is not current. It does not wait for a request that holds the
// lane: a listener that hears of the change hears of revoked keys too.
func (n *news) changed(lane uuid.UUID, isCurrent func(known *Lane) bool) {
	known, ok := n.mind.lanes.Get(lane)
	if !ok {
		return
	}
	check := func() {
		current := isCurrent(known)
		known.mu.Unlock()
		if !current {
			n.outdate(known)
		}
	}
	if known.mu.TryLock() {
		check()
		return
	}
	go func() {
		known.mu.Lock()
		check()
	}()
}

// Forget drops a lane: the store knows it better.
func (m *mind) Forget(lane uuid.UUID) { m.lanes.Delete(lane) }

// Missed notes that changes may have been missed: each lane is looked at again with its
// next request, and is used as it is while the store does not answer.
func (n *news) Missed() { n.missed.Add(1) }

// find returns the lane, locked, whose head lies furthest along the history, and
// how many messages lie before that head; nil if it does not exist.
func (r *Resolver) find(ctx context.Context, scope Scope, messages []conversation.Digest, chain []conversation.Hash) (*Lane, int, error) {
	for {
		lane, met, err := r.hold(ctx, chain)
		if err != nil {
			return nil, 0, err
		}
		if lane != nil && r.isBehind(lane, met, messages) {
			if lane, met = r.update(ctx, lane, met, scope, chain); lane == nil {
				continue
			}
		}
		if lane != nil || !answered(messages) {
			return lane, met, nil
		}
		return r.lookUp(ctx, scope, chain)
	}
}

// hold is find among the lanes that are remembered.
func (m *mind) hold(ctx context.Context, chain []conversation.Hash) (lane *Lane, met int, err error) {
	for {
		lane, met = m.remembered(chain)
		if lane == nil {
			return nil, 0, nil
		}
		if err := lane.Lock(ctx); err != nil {
			return nil, 0, err
		}
		// Who held it meanwhile may have had more of this history, or dropped the lane.
		if still, now := m.remembered(chain); still == lane && now == met {
			return lane, met, nil
		}
		lane.mu.Unlock()
	}
}

// remembered is find among the lanes that are remembered, and locks none.
func (m *mind) remembered(chain []conversation.Hash) (lane *Lane, met int) {
	for i := len(chain) - 1; i > 0; i-- {
		if known, ok := m.heads.Get(chain[i]); ok {
			lane, _ := m.lanes.Get(known.lane)
			return lane, known.position
		}
	}
	return nil, 0
}

// stored is find in the store.
func (r *Resolver) stored(ctx context.Context, scope Scope, chain []conversation.Hash) (*Lane, int, error) {
	found, err := r.store.Find(ctx, scope.Workspace, chain[1:])
	if errors.Is(err, ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("find lane: %w", err)
	}
	lane, err := r.take(ctx, &found)
	return lane, found.Match, err
}

// Stored returns the lane as it is stored. It is no lane of a Resolver.
func (f *Found) Stored() *Lane {
	lane := &Lane{
		Session: f.Session, ID: f.Lane, Kind: f.Kind, Naming: f.Naming, Ancestry: Ancestry{Taken: f.Taken},
		reached: reached{tip: f.Tip, isFork: f.IsFork}, durability: durable(f.Archived),
		compacted: compacted{projections: f.Projections, pins: f.Pins, order: f.Order, summaries: f.Summaries},
		progress:  progress{attempts: f.Attempts, plan: f.Plan}, inserted: inserted{inserts: f.Inserts},
	}
	lane.warmth.load(f.Heat)
	return lane
}

// leave returns the lane, locked, of a request that leaves another one's history
// after match messages; the caller holds that one. Where an answer is shared, it belongs
// to the same session.
func leave(lane *Lane, match int, messages []conversation.Digest, chain []conversation.Hash, scope Scope, hint Hint) *Lane {
	if hint.Name == "" && !answered(messages[:match]) {
		return begin(openingID(hint, messages, chain), scope, hint)
	}
	fork := lane.fork(match)
	if hint.Kind != "" {
		fork.Kind = hint.Kind
	}
	fork.ID = forkID(lane.ID, fork.Kind, chain[len(messages)])
	if fork.Kind == Side {
		fork.trunk = weak.Make(lane)
	}
	fork.mu.Lock()
	return fork
}

// begin returns a new lane with an id, locked.
func begin(id uuid.UUID, scope Scope, hint Hint) *Lane {
	lane := &Lane{Session: sessionID(scope, hint, id), ID: id, Naming: Naming{Name: hint.Name, Source: hint.Source}, Kind: cmp.Or(hint.Kind, Main), durability: durable(0)}
	lane.mu.Lock()
	return lane
}

// HasHistory reports whether messages carry history: an answer that a model has given.
func HasHistory(messages []conversation.Digest) bool { return answered(messages) }

// answered reports whether a model has spoken in messages.
func answered(messages []conversation.Digest) bool {
	return slices.ContainsFunc(messages, isAnswer)
}

// beginning returns how many messages it takes to tell a history from others: those up
// to its first answer, or all of them.
func beginning(messages []conversation.Digest) int {
	if first := slices.IndexFunc(messages, isAnswer); first >= 0 {
		return first + 1
	}
	return len(messages)
}

func isAnswer(message conversation.Digest) bool { return message.Role == conversation.Assistant }

func root(scope Scope, name, lane string) conversation.Hash {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s|%s|%s|%q|%q", scope.Workspace, scope.APIKey, scope.Format, name, lane)
	if scope.Upstream != "" { // links stored before upstreams counted stay valid for the provider's own
		fmt.Fprintf(hash, "|%q", scope.Upstream)
	}
	if scope.EndUser != "" { // nor is one end user's history ever another's
		fmt.Fprintf(hash, "|end user %s", scope.EndUser)
	}
	return conversation.Hash(hash.Sum(nil))
}
