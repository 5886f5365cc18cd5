package session

import "github.com/google/uuid"

// Standing is the store's state of a lane, reduced to the figures that show whether a process that remembers
// the lane is behind.
type Standing struct {
	Lane       uuid.UUID
	Match      int // messages of the history before the lane's head
	Tip        int // messages of the lane's longest request
	Projection int // number of its own newest projection; 0 if it has made none yet
	Insert     int // number of its own newest insert; 0 if it has none yet
	Heat       CacheState
	Attempts   Attempts
}

// standing is the Standing of the remembered lane. The caller holds it.
func (l *Lane) standing() Standing {
	standing := Standing{Lane: l.ID, Tip: l.reached.tip, Heat: l.Heat(), Attempts: l.Attempts()}
	if number := l.NextNumber() - 1; number > l.Ancestry.Inherited {
		standing.Projection = number
	}
	if number := l.NextInsert() - 1; number > l.Ancestry.Taken {
		standing.Insert = number
	}
	return standing
}

// catchUp takes over a lane's progress from elsewhere and reports whether the lane is then current. If not,
// its projections or inserts must be read, too. The caller holds the lane.
func (l *Lane) catchUp(now Standing) (current bool) {
	own := l.standing()
	l.reached.tip = max(l.reached.tip, now.Tip)
	l.warmth.renew(now.Heat)
	l.progress.mu.Lock()
	if now.Attempts.At.After(l.attempts.At) {
		l.attempts = now.Attempts
	}
	l.progress.mu.Unlock()
	return own.Projection >= now.Projection && own.Insert >= now.Insert
}

// unasked returns the assumed number of a history's messages in the lane while the store is unavailable. This
// process knows met of them. If other processes have served more of the lane since, the history is assumed to
// continue from there. The recorder finds a history that does not. The caller holds the lane.
func (l *Lane) unasked(met, length int) int {
	if met < l.reached.served { // it continues an earlier request to this process
		return met
	}
	return max(met, min(l.reached.tip, length))
}

// absorb updates the remembered lane to its stored state. State that the store does not have yet stays. The
// caller holds the lane.
func (l *Lane) absorb(found *Found) {
	l.catchUp(Standing{Tip: found.Tip, Heat: found.Heat, Attempts: found.Attempts})
	l.compacted.projections = withNewer(found.Projections, l.compacted.projections)
	l.compacted.summaries, l.compacted.pins, l.compacted.pinned, l.compacted.order = found.Summaries, found.Pins, found.Pinned, found.Order
	l.inserts = found.Inserts
	l.Arrived(0, found.Archived)
	l.PlanAhead(found.Plan)
}

// withNewer returns the stored projections and the lane's newer ones, which are durable elsewhere until the
// store accepts them.
func withNewer(stored, own []Projection) []Projection {
	newest := 0
	if n := len(stored); n > 0 {
		newest = stored[n-1].Number
	}
	for _, projection := range own {
		if projection.Number > newest {
			stored = append(stored, projection)
		}
	}
	return stored
}

// renew takes over a newer prompt of the lane that another process has sent.
func (w *cacheState) renew(heat CacheState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if heat.At.After(w.heat.At) {
		w.load(heat)
	}
}
