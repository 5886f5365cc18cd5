package connections

import (
	"cmp"
	"net"
	"slices"

	"github.com/google/uuid"
)

// Holders of connections beside a tenants.Place.
type (
	keyID     uuid.UUID // an API key or a login
	accountID uuid.UUID
)

// entry is a counted unit: a connection, or a request that came through a trusted proxy.
type entry struct {
	limiter  *Limiter
	conn     net.Conn // nil for a request
	proxy    bool     // a trusted proxy's connection, which carries requests of many clients
	by       []any    // its holders, the largest unit last; empty for a proxy's
	requests int      // under way
	busy     bool     // the server handles a request of it, or writes the answer
	since    uint64   // the turn in which it became idle
	gone     bool     // no longer counted
}

// takes returns the descriptors of the entry: a request takes one on its way to a provider.
func (e *entry) takes() int {
	if e.conn == nil {
		return e.requests
	}
	return 1 + e.requests
}

// isIdle reports whether the entry may be closed.
func (e *entry) isIdle() bool { return e.conn != nil && !e.busy && e.requests == 0 }

// holder holds the entries of a place, key or account.
type holder struct {
	entries map[*entry]struct{}
	takes   int // descriptors
}

// enter counts an entry, or returns the exceeded limit.
func (l *Limiter) enter(e *entry) (why TooMany, entered bool) {
	var closing []net.Conn
	defer func() { closeAll(closing) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(e.by) > 0 && l.limits.PerPlace > 0 && l.count(e.by[0]) >= l.limits.PerPlace {
		return TooMany{Of: OfPlace, Limit: l.limits.PerPlace}, false
	}
	if e.conn != nil {
		if closing = l.makeRoom(1); !l.hasRoom(1) {
			return TooMany{Of: OfAll}, false
		}
		l.open[e] = struct{}{}
		l.taken++
		l.idle(e)
	}
	l.hold(e, e.by)
	return TooMany{}, true
}

// leave stops counting an entry. It may be called twice.
func (l *Limiter) leave(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(e)
}

// begin counts a request on a connection, or returns the exceeded limit.
func (l *Limiter) begin(e *entry) (why TooMany, begun bool) {
	var closing []net.Conn
	defer func() { closeAll(closing) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	if closing = l.makeRoom(1); e.gone || !l.hasRoom(1) {
		return TooMany{Of: OfAll}, false
	}
	l.weigh(e, 1)
	return TooMany{}, true
}

// end stops counting the request. The connection only becomes idle when the server says so, because the
// answer may still be on its way.
func (l *Limiter) end(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.gone {
		l.weigh(e, -1)
	}
}

// use notes whether a connection is in use.
func (l *Limiter) use(e *entry, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.busy = busy; !busy {
		l.idle(e)
	}
}

// admit counts an entry for a key and its account, or returns a TooMany. If they have too many, it closes
// their oldest idle connection.
func (l *Limiter) admit(e *entry, key keyID, account accountID) error {
	var closing []net.Conn
	defer func() { closeAll(closing) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.gone {
		return nil // its request ends on its own
	}
	for _, bound := range []struct {
		of    Of
		who   any
		limit int
	}{{OfKey, key, l.limits.PerKey}, {OfAccount, account, l.limits.PerAccount}} {
		if bound.limit == 0 || slices.Contains(e.by, bound.who) || l.count(bound.who) < bound.limit {
			continue
		}
		oldest := l.oldestIdle(bound.who)
		if oldest == nil {
			return TooMany{Of: bound.of, Limit: bound.limit}
		}
		l.drop(oldest)
		closing = append(closing, oldest.conn)
	}
	before := e.by
	l.release(e)
	l.hold(e, []any{key, account})
	for most := l.limits.Descriptors * 3 / 4; most > 0 && l.holders[account].takes > most; {
		oldest := l.oldestIdle(account)
		if oldest == nil {
			l.release(e)
			l.hold(e, before)
			return TooMany{Of: OfShare}
		}
		l.drop(oldest)
		closing = append(closing, oldest.conn)
	}
	return nil
}

// hasRoom reports whether a number of descriptors are free.
func (l *Limiter) hasRoom(more int) bool {
	return l.limits.Descriptors == 0 || l.taken+more <= l.limits.Descriptors
}

// makeRoom frees a number of descriptors, if they are not free: it stops counting idle connections and
// returns them for closing. It takes several at once, so that not every new connection has to look for one.
func (l *Limiter) makeRoom(more int) []net.Conn {
	if l.hasRoom(more) {
		return nil
	}
	return l.dropIdle(max(more, l.limits.Descriptors/64))
}

// shed closes idle connections regardless of the counters, because the process has run out of descriptors. It
// reports whether there were any.
func (l *Limiter) shed() bool {
	l.mu.Lock()
	closing := l.dropIdle(max(1, len(l.open)/16))
	l.mu.Unlock()
	closeAll(closing)
	return len(closing) > 0
}

// dropIdle stops counting up to count idle connections. It always picks the holder with the most connections,
// and the longest idle one among theirs.
func (l *Limiter) dropIdle(count int) []net.Conn {
	idle := make(map[any][]*entry)
	for e := range l.open {
		if e.isIdle() {
			idle[e.largest()] = append(idle[e.largest()], e)
		}
	}
	type candidate struct {
		*entry

		size int // of its holder when its turn comes
	}
	var candidates []candidate
	for who, entries := range idle {
		slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.since, b.since) })
		for i, e := range entries {
			candidates = append(candidates, candidate{e, l.count(who) - i})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.since, b.since))
	})
	var closing []net.Conn
	for _, one := range candidates[:min(count, len(candidates))] {
		l.drop(one.entry)
		closing = append(closing, one.conn)
	}
	return closing
}

// largest returns the entry's largest holder; nil for a trusted proxy's connection.
func (e *entry) largest() any {
	if len(e.by) == 0 {
		return nil
	}
	return e.by[len(e.by)-1]
}

// oldestIdle returns a holder's longest idle connection; nil if all are in use.
func (l *Limiter) oldestIdle(who any) *entry {
	var oldest *entry
	for e := range l.holders[who].entries {
		if e.isIdle() && (oldest == nil || e.since < oldest.since) {
			oldest = e
		}
	}
	return oldest
}

// count returns a holder's number of entries.
func (l *Limiter) count(who any) int {
	if h := l.holders[who]; h != nil {
		return len(h.entries)
	}
	return 0
}

// idle marks a connection as idle.
func (l *Limiter) idle(e *entry) {
	l.turn++
	e.since = l.turn
}

// weigh changes the number of a connection's requests.
func (l *Limiter) weigh(e *entry, more int) {
	e.requests += more
	l.taken += more
	for _, who := range e.by {
		l.holders[who].takes += more
	}
}

// hold counts an entry for holders.
func (l *Limiter) hold(e *entry, by []any) {
	e.by = by
	for _, who := range by {
		h := l.holders[who]
		if h == nil {
			h = &holder{entries: make(map[*entry]struct{})}
			l.holders[who] = h
		}
		h.entries[e] = struct{}{}
		h.takes += e.takes()
	}
}

// release removes an entry from its holders.
func (l *Limiter) release(e *entry) {
	for _, who := range e.by {
		h := l.holders[who]
		h.takes -= e.takes()
		if delete(h.entries, e); len(h.entries) == 0 {
			delete(l.holders, who)
		}
	}
	e.by = nil
}

// drop stops counting an entry.
func (l *Limiter) drop(e *entry) {
	if e.gone {
		return
	}
	e.gone = true
	l.release(e)
	if e.conn != nil {
		delete(l.open, e)
		l.taken -= e.takes()
	}
}

func closeAll(connections []net.Conn) {
	for _, conn := range connections {
		_ = conn.Close()
	}
}
