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
	// laneMemory bounds the memory of projections, in bytes.
	laneMemory = 256 << 20
	// knownHeads bounds how many ends of requests are found without the store.
	knownHeads = 200_000
	// knownRuns bounds how many client runs are remembered.
	knownRuns = 20_000
)

// Hint holds a request's own information on its session.
type Hint struct {
	Name   string // the client's own session id; "" to recognize it by content
	Source string // where Name came from
	Lane   string // the client's own name for a thread: an agent's id
	Kind   Kind   // of the lane that the request continues or opens; "" means Main

	// Copied says that the client's thread began as a copy of the session's main one. Its lane forks from the
	// main lane, so it is looked up there.
	Copied bool

	// Session is the session with the answer that the request continues at the provider. It is set by
	// Resolver.Continue.
	Session uuid.UUID
}

// line is the name of the thread in which the request's lane is looked up.
func (h Hint) line() string {
	if h.Copied {
		return ""
	}
	return h.Lane
}

// Resolver finds the lane that a request continues. It remembers lanes and looks others up in the store.
type Resolver struct {
	*mind // remembered lanes
	*news // changes of those lanes elsewhere

	store     Store
	runs      *localcache.Cache[[32]byte, *Run]      // by the root of their histories
	histories *localcache.Cache[[32]byte, *history]  // by their first link
	answers   *localcache.Cache[[32]byte, uuid.UUID] // sessions of answers that providers store
	openings  openings
	*rewritings

	shared    bool       // other processes use the same store
	announcer *Announcer // announces requests to them; may be nil
	elsewhere elsewhere  // reads offers of other processes outside the store; may be nil
	outage    *Outage    // of the store
}

// mind remembers lanes and the ends of their requests.
type mind struct {
	lanes *localcache.Cache[[16]byte, *Lane] // by id
	heads *localcache.Cache[[32]byte, head]  // by link
}

// news updates remembered lanes when other processes announce changes.
type news struct {
	store      Store
	mind       *mind
	ends       ends // reads lanes that others compact; may be nil
	missed     atomic.Uint64
	refreshing chan struct{}
}

// head is the end of an earlier request, identified by the history's link after it.
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
	answers, err := localcache.New[[32]byte](localcache.Options[uuid.UUID]{MaximumSize: knownAnswers})
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	rewritings, err := newRewritings()
	if err != nil {
		return nil, err
	}
	remembers := &mind{lanes: lanes, heads: heads}
	return &Resolver{
		mind: remembers, news: &news{store: store, mind: remembers, refreshing: make(chan struct{}, refreshers)},
		store: store, runs: runs, openings: newOpenings(), histories: histories, answers: answers, rewritings: rewritings, outage: NewOutage(time.Now),
	}, nil
}

// Chain returns the links of a history: element i is the link after i messages. The root includes the scope
// and the client's session name, so that unrelated histories never share a link.
func Chain(scope Scope, hint Hint, messages []conversation.Digest) []conversation.Hash {
	chain := make([]conversation.Hash, len(messages)+1)
	chain[0] = root(scope, hint.Name, hint.line())
	for i := range messages {
		chain[i+1] = conversation.Extend(chain[i], messages[i].Identity)
	}
	return chain
}

// Resolve returns the lane that a request continues, or a new one, locked. The caller calls Unlock once the
// request's projection is decided. chain is the request's history from Chain. met is how many of its messages
// an earlier request of the session had. A side call never continues a lane of the conversation, nor the
// other way round: it forks and leaves the lane unchanged. So does a thread that began as a copy of the main
// one. On an error, because the store failed or ctx ended while another request held the lane, the request
// can go on without a lane. A store that is away is no error: the lane is then a remembered one, or Assumed.
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

// open is Resolve for a history that this process does not remember. Of several requests with the same
// history, one asks the store and opens the lane. open returns nil to the requests that waited for it.
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

// ask returns the stored lane of a history, locked, and the number of messages before its head. If the store
// has no such lane, it returns nil and the id for a new one. With ErrAway it returns the id that the lane
// probably has.
func (r *Resolver) ask(ctx context.Context, scope Scope, hint Hint, messages []conversation.Digest, chain []conversation.Hash) (*Lane, int, uuid.UUID, error) {
	isAnswered := answered(messages)
	if !isAnswered && (!r.shared || hint.Name == "") {
		return nil, 0, newID(), nil // the first request of a history has no lane to continue
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

// join returns the lane, locked and remembered, of a request that continues after the first met messages of a
// lane that the caller holds. If lane is nil, it returns a new lane with the id.
func (r *Resolver) join(lane *Lane, met int, id uuid.UUID, scope Scope, hint Hint, messages []conversation.Digest, chain []conversation.Hash) *Lane {
	length := len(messages)
	aside := hint.Kind == Side
	switch {
	case lane == nil:
		lane = begin(id, scope, hint)
		lane.checked(r.missed.Load())
	case met < lane.reached.tip && met < length || aside != (lane.Kind == Side) || hint.Copied && lane.isMain(hint.Kind):
		defer lane.Unlock() // once the other one is remembered, so that a waiting request finds it
		lane = leave(lane, met, messages, chain, scope, hint)
		lane.checked(r.missed.Load())
	}
	lane.reached.tip, lane.reached.served = max(lane.reached.tip, length), max(lane.reached.served, length)
	r.lanes.Set(lane.ID, lane)
	if !aside || lane.Ancestry.ForkAt < length { // otherwise the head is the conversation's
		r.heads.Set(chain[length], head{lane: lane.ID, position: length})
		lane.reached.at.Store(&place{workspace: scope.Workspace, head: chain[length]})
	}
	if length > 1 && !aside && !hint.Copied { // the main line may continue from there, too
		// A client may resend the same history with a changed newest message.
		r.heads.Set(chain[length-1], head{lane: lane.ID, position: length - 1})
	}
	return lane
}

// isMain reports whether a lane is the session's main line for a copy with requests of a kind. If that kind
// is Main itself, forks of the main line are copies.
func (l *Lane) isMain(kind Kind) bool {
	return l.Kind == Main && (cmp.Or(kind, Main) != Main || l.Ancestry.ForkAt == 0 && !l.reached.isFork)
}

// Committed updates the weight of a lane with a new projection.
func (m *mind) Committed(lane *Lane) { m.lanes.Set(lane.ID, lane) }

// Known returns a remembered lane, or nil.
func (m *mind) Known(lane uuid.UUID) *Lane {
	known, _ := m.lanes.Get(lane)
	return known
}

// Planned keeps a plan for a lane's next epoch and updates the lane's weight. It does nothing if the lane has
// been dropped meanwhile. The caller holds the lane.
func (m *mind) Planned(lane *Lane, plan *Plan) {
	m.lanes.ComputeIfPresent(lane.ID, func(known *Lane) (*Lane, bool) {
		if known != lane {
			return known, false
		}
		lane.PlanAhead(plan)
		return lane, true
	})
}

// PlanChanged notes that the store has a plan with the number of a lane's next epoch. It reloads the lane
// unless this process has the plan.
func (n *news) PlanChanged(lane uuid.UUID, number int) {
	known, ok := n.mind.lanes.Get(lane)
	if !ok {
		return
	}
	if plan := known.Plan(); plan == nil || plan.Projection.Number != number {
		n.outdate(known)
	}
}

// Changed notes that a lane has a projection with a number in the store, or 0 if the lane was deleted. It
// reloads the lane unless this process made the projection.
func (n *news) Changed(lane uuid.UUID, number int) {
	n.changed(lane, func(known *Lane) bool { return number > 0 && known.NextNumber() > number })
}

// InsertsChanged notes that a lane has inserts up to a number in the store. It reloads the lane unless this
// process made them.
func (n *news) InsertsChanged(lane uuid.UUID, number int) {
	n.changed(lane, func(known *Lane) bool { return known.NextInsert() > number })
}

// changed reloads a lane unless it is current. It does not wait for a request that holds the lane, because
// the same listener also receives revoked keys.
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

// Forget drops a lane because the store has a newer state.
func (m *mind) Forget(lane uuid.UUID) { m.lanes.Delete(lane) }

// Missed notes that changes may have been missed. Each lane's next request checks the store, and uses the
// remembered lane while the store does not answer.
func (n *news) Missed() { n.missed.Add(1) }

// find returns the lane, locked, with the furthest head along the history, and the number of messages before
// that head. It returns nil if there is no such lane.
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

// hold is find among remembered lanes.
func (m *mind) hold(ctx context.Context, chain []conversation.Hash) (lane *Lane, met int, err error) {
	for {
		lane, met = m.remembered(chain)
		if lane == nil {
			return nil, 0, nil
		}
		if err := lane.Lock(ctx); err != nil {
			return nil, 0, err
		}
		// The previous holder may have extended this history or dropped the lane.
		if still, now := m.remembered(chain); still == lane && now == met {
			return lane, met, nil
		}
		lane.mu.Unlock()
	}
}

// remembered is find among remembered lanes, without locking.
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

// Stored returns the lane as stored. It does not belong to a Resolver.
func (f *Found) Stored() *Lane {
	lane := &Lane{
		Session: f.Session, ID: f.Lane, Kind: f.Kind, Naming: f.Naming, Ancestry: Ancestry{Taken: f.Taken},
		reached: reached{tip: f.Tip, isFork: f.IsFork}, durability: durable(f.Archived),
		compacted: compacted{projections: f.Projections, pins: f.Pins, pinned: f.Pinned, order: f.Order, summaries: f.Summaries},
		progress:  progress{attempts: f.Attempts, plan: f.Plan}, inserted: inserted{inserts: f.Inserts},
	}
	lane.warmth.load(f.Heat)
	return lane
}

// leave returns the lane, locked, of a request that leaves another lane's history after match messages. The
// caller holds the other lane. If they share an answer or the client names the session, the new lane belongs
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

// HasHistory reports whether messages contain a model's answer.
func HasHistory(messages []conversation.Digest) bool { return answered(messages) }

// answered reports whether messages contain a model's answer.
func answered(messages []conversation.Digest) bool {
	return slices.ContainsFunc(messages, isAnswer)
}

// beginning returns how many messages identify a history: those up to its first answer, or all of them.
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
	if scope.EndUser != "" { // so that end users never share a history
		fmt.Fprintf(hash, "|end user %s", scope.EndUser)
	}
	return conversation.Hash(hash.Sum(nil))
}
