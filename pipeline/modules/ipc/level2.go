package ipc

import (
	"slices"
)

// records renders turns at L2, and collects the data for L3.
type records struct {
	history    *history
	protection *protection
	uses       *uses // nil until computed
	typed      typedBound
	base       base
	again      map[string]int // the newest turn that makes a call or touches a file
	isAlone    bool           // no frame precedes the records
}

// note renders the turn at L2 and collects its data for L3.
func (r *records) note(t *turn) error {
	if err := r.noteBand(t); err != nil {
		return err
	}
	if err := r.keep(t); err != nil {
		return err
	}
	return r.weighRecord(t)
}

// bandTurns is how many adjacent turns get their records at once.
const bandTurns = 96

// noteBand makes the records of a turn and its neighbors that may go to L2, the newest first,
// because an older one goes deeper sooner and need not repeat what a newer one has.
func (r *records) noteBand(t *turn) error {
	if t.record != nil {
		return nil
	}
	if err := r.findUses(); err != nil {
		return err
	}
	first := t.index - t.index%bandTurns
	end := min(first+bandTurns, len(r.history.turns))
	var band []*turn
	for _, neighbor := range r.history.turns[first:end] {
		if neighbor.deepest >= 2 || neighbor == t {
			band = append(band, neighbor)
		}
	}
	if err := r.history.each(band, r.newRecord); err != nil {
		return err
	}
	for _, neighbor := range slices.Backward(band) {
		r.enrich(neighbor, end)
	}
	return r.history.each(band, r.weighRecord)
}

// findUses finds out which turns use which names.
func (r *records) findUses() error {
	if r.uses != nil {
		return nil
	}
	used := make([][]hashedName, len(r.history.turns))
	err := r.history.each(r.history.turns, func(t *turn) error {
		err := r.history.read(t)
		if err == nil {
			used[t.index] = t.names()
			t.calls()
		}
		return err
	})
	if err != nil {
		return err
	}
	r.typed = r.boundTyped()
	if !r.isAlone {
		r.base, r.again = baseOf(r.history.turns), newestCalls(r.history.turns)
	}
	r.uses = newUses()
	for i := range used {
		r.uses.add(i, used[i])
	}
	if order := r.history.exchange.Lane.Order; order != nil {
		r.uses.add(len(r.history.turns), appendNames(nil, order.Instructions, false)) // names in it count as used
	}
	return nil
}

// weighRecord counts the tokens of the turn at L2.
func (r *records) weighRecord(t *turn) error {
	if t.record.typed != r.typed {
		t.record.typed, t.record.noted, t.record.size = r.typed, "", 0
	}
	if t.record.size == 0 {
		t.record.size = r.history.countText(t.record.entry())
	}
	return nil
}
