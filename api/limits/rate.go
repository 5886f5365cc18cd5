package limits

import "time"

// window is the time span of rates.
const window = time.Minute

// rate is a subject's state for a rate: the theoretical time at which the next event would arrive if they
// came evenly.
type rate struct{ next time.Time }

// wait returns how long until n more events fit into a limit; 0 if they fit now.
func (r rate) wait(now time.Time, limit, n int) time.Duration {
	return max(0, later(r.next, now).Add(time.Duration(n)*interval(limit)).Sub(now.Add(window)))
}

// add counts n events, even beyond the limit; a negative n takes some back.
func (r rate) add(now time.Time, limit, n int) rate {
	return rate{next: later(r.next, now).Add(time.Duration(n) * interval(limit))}
}

// left returns how many events fit now.
func (r rate) left(now time.Time, limit int) int {
	free := now.Add(window).Sub(later(r.next, now))
	return min(limit, max(0, int(free/interval(limit))))
}

// interval is the time between events that come evenly.
func interval(limit int) time.Duration { return max(1, window/time.Duration(limit)) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
