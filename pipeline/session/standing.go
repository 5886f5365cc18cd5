package session

import "github.com/google/uuid"

// Standing is what the store knows of the lane that a history continues, in as few
// figures as tell whether a process that remembers the lane is behind.
type Standing struct {
	Lane       uuid.UUID
	Match      int // messages of the history that the lane's head stands for
	Tip        int // messages of the lane's request that went furthest
	Projection int // number of the newest projection that it made itself; 0 if it has made none yet
	Insert     int // number of the newest insert of its own; 0 if it has none yet
	Heat       CacheState
	Attempts   Attempts
}

// standing is Standing as this process remembers the lane. The caller holds it.
func (l *Lane) standing() Standing {
	standing := Standing{Lane: l.ID, Tip: l.tip, Heat: l.Heat(), Attempts: l.Attempts()}
	if number := l.NextNumber() - 1; number > l.Inherited {
		standing.Projection = number
	}
	if number := l.NextInsert() - 1; number > l.Taken {
		standing.Insert = number
	}
	return standing
}

// catchUp takes over how far a lane has come elsewhere, and reports whether that is all:
// else its projections or inserts have to be read, too. The caller holds the lane.
func (l *Lane) catchUp(now Standing) (current bool) {
	own := l.standing()
	l.tip = max(l.tip, now.Tip)
	l.warmth.renew(now.Heat)
	l.progress.mu.Lock()
	if now.Attempts.At.After(l.attempts.At) {
		l.attempts = now.Attempts
	}
	l.progress.mu.Unlock()
	return own.Projection >= now.Projection && own.Insert >= now.Insert
}

// unasked returns how many messages of a history with length messages are taken to be the
// lane's while the store cannot be asked. This process knows met of them; where other
// processes have served more of the lane since, the history is taken to go on from there. One
// that does not is found by the recorder. The caller holds the lane.
func (l *Lane) unasked(met, length int) int {
	if met < l.served { // it goes on from an earlier request to this process
		return met
	}
	return max(met, min(l.tip, length))
}

// absorb takes over what is stored of the lane, which this process remembers in an older
// state. What the store has not been told yet stays. The caller holds the lane.
func (l *Lane) absorb(found *Found) {
	l.catchUp(Standing{Tip: found.Tip, Heat: found.Heat, Attempts: found.Attempts})
	l.projections = withNewer(found.Projections, l.projections)
	l.summaries, l.pins, l.order = found.Summaries, found.Pins, found.Order
	l.inserts = found.Inserts
	l.Arrived(0, found.Archived)
	l.PlanAhead(found.Plan)
}

// withNewer returns the projections that are stored, and those of a lane's that are newer: they
// are durable elsewhere until the store takes them.
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
