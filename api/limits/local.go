package limits

import (
	"sync"
	"time"

	"palimpsest/tenants"
)

// local counts in this process.
type local struct {
	mu       sync.Mutex
	subjects map[Subject]*use
}

// use is a subject's usage.
type use struct {
	requests, tokens rate
	running          int // concurrent requests
	spend            spend
	held             int64     // millionths of a dollar that requests under way may cost
	loaded           bool      // spend includes the database's
	used             time.Time // last access
	hasBudget        bool      // keep spend up to date
}

// spend is the spend in the day and the month of a moment.
type spend struct {
	day, month           time.Time // when they began
	dayMicro, monthMicro int64     // millionths of a dollar
}

// at returns the spend at a moment: a new day or month starts at zero.
func (s spend) at(now time.Time) spend {
	day, month := tenants.SpendSpan(now)
	if !s.month.Equal(month) {
		s.month, s.monthMicro = month, 0
	}
	if !s.day.Equal(day) {
		s.day, s.dayMicro = day, 0
	}
	return s
}

// atLeast raises a spend to another counter's value for the same day and month.
func (s spend) atLeast(other spend) spend {
	if s.day.Equal(other.day) {
		s.dayMicro = max(s.dayMicro, other.dayMicro)
	}
	if s.month.Equal(other.month) {
		s.monthMicro = max(s.monthMicro, other.monthMicro)
	}
	return s
}

// add adds the cost of a request that arrived at a moment.
func (s spend) add(at time.Time, micro int64) spend {
	day, month := tenants.SpendSpan(at)
	if s.day.Equal(day) {
		s.dayMicro += micro
	}
	if s.month.Equal(month) {
		s.monthMicro += micro
	}
	return s
}

func newLocal() *local { return &local{subjects: make(map[Subject]*use)} }

// of returns a subject's usage now. The caller holds the lock.
func (l *local) of(held Held, now time.Time) *use {
	found, known := l.subjects[held.Subject]
	if !known {
		found = &use{}
		l.subjects[held.Subject] = found
	}
	found.used, found.hasBudget = now, held.Quota.HasBudget()
	found.spend = found.spend.at(now)
	return found
}

// admit counts and admits a request, or returns the exceeded limit.
func (l *local) admit(all []Held, now time.Time) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	result := l.first(all, func(held Held) (Kind, time.Duration) { return l.of(held, now).meets(held.Quota, now) })
	for _, held := range all {
		u := l.of(held, now)
		if result.kind == None {
			u.count(held.Quota, now)
		}
		result.left = append(result.left, u.left(held.Quota, now))
	}
	return result
}

// first returns the first exceeded limit among the subjects.
func (l *local) first(all []Held, meets func(Held) (Kind, time.Duration)) verdict {
	for i, held := range all {
		if kind, wait := meets(held); kind != None {
			return verdict{kind: kind, of: i, wait: wait}
		}
	}
	return verdict{}
}

// note counts a request that another counter admitted.
func (l *local) note(all []Held, now time.Time, known []spend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, held := range all {
		u := l.of(held, now)
		u.count(held.Quota, now)
		u.spend = u.spend.atLeast(known[i])
	}
}

func (u *use) count(quota tenants.Quota, now time.Time) {
	if quota.Concurrency > 0 {
		u.running++
	}
	if quota.RequestsPerMinute > 0 {
		u.requests = u.requests.add(now, quota.RequestsPerMinute, 1)
	}
}

// meets returns the limit that another request would exceed, the longest lasting first.
func (u *use) meets(quota tenants.Quota, now time.Time) (Kind, time.Duration) {
	if kind, wait := u.spends(quota, now); kind == MonthBudget || kind == DayBudget {
		return kind, wait
	}
	if quota.Concurrency > 0 && u.running >= quota.Concurrency {
		return Concurrency, 0
	}
	if quota.TokensPerMinute > 0 {
		if wait := u.tokens.wait(now, quota.TokensPerMinute, 1); wait > 0 {
			return Tokens, wait
		}
	}
	if quota.RequestsPerMinute > 0 {
		if wait := u.requests.wait(now, quota.RequestsPerMinute, 1); wait > 0 {
			return Requests, wait
		}
	}
	return None, 0
}

// left returns the rest of each limit.
func (u *use) left(quota tenants.Quota, now time.Time) Remaining {
	left := Remaining{
		Concurrency: max(0, quota.Concurrency-u.running),
		DayMicroUSD: max(0, quota.DayMicroUSD-u.spend.dayMicro), MonthMicroUSD: max(0, quota.MonthMicroUSD-u.spend.monthMicro),
	}
	if quota.RequestsPerMinute > 0 {
		left.RequestsPerMinute = u.requests.left(now, quota.RequestsPerMinute)
	}
	if quota.TokensPerMinute > 0 {
		left.TokensPerMinute = u.tokens.left(now, quota.TokensPerMinute)
	}
	return left
}

// take counts tokens and holds a part of the budgets if all of it fits, otherwise it returns the limit that
// doesn't allow it. Holds of requests from the day before count too.
func (l *local) take(all []Held, now time.Time, asked claim) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	result := l.first(all, func(held Held) (Kind, time.Duration) {
		return l.of(held, now).fits(held.Quota, now, asked.of(held.Quota))
	})
	for _, held := range all {
		u := l.of(held, now)
		if result.kind == None {
			u.take(held.Quota, now, asked.of(held.Quota))
		}
		result.left = append(result.left, u.left(held.Quota, now))
	}
	return result
}

// fits returns the limit that a claim would exceed.
func (u *use) fits(quota tenants.Quota, now time.Time, asked claim) (Kind, time.Duration) {
	if asked.micro > 0 {
		if kind, wait := u.spends(quota, now); kind != None {
			return kind, wait
		}
	}
	if asked.prompt > 0 {
		if wait := u.tokens.wait(now, quota.TokensPerMinute, asked.prompt); wait > 0 {
			return Tokens, wait
		}
	}
	return None, 0
}

// spends returns the budget that another request would exceed.
func (u *use) spends(quota tenants.Quota, now time.Time) (Kind, time.Duration) {
	switch month, day := quota.MonthMicroUSD, quota.DayMicroUSD; {
	case month > 0 && u.spend.monthMicro >= month:
		return MonthBudget, untilMonth(now)
	case day > 0 && u.spend.dayMicro >= day:
		return DayBudget, untilDay(now)
	case month > 0 && u.spend.monthMicro+u.held >= month, day > 0 && u.spend.dayMicro+u.held >= day:
		return HeldBudget, 0
	}
	return None, 0
}

func (u *use) take(quota tenants.Quota, now time.Time, asked claim) {
	u.held += asked.micro
	if n := asked.prompt + asked.answers; n > 0 {
		u.tokens = u.tokens.add(now, quota.TokensPerMinute, n)
	}
}

// settle ends a request: it adds n more tokens than were taken, and the cost unless another counter knows the
// sums.
func (l *local) settle(ticket *Ticket, now time.Time, n int, micro int64, known []spend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, held := range ticket.held {
		u := l.of(held, now)
		u.held = max(0, u.held-ticket.claim.of(held.Quota).micro)
		if held.Quota.Concurrency > 0 {
			u.running = max(0, u.running-1)
		}
		if held.Quota.TokensPerMinute > 0 {
			u.tokens = u.tokens.add(now, held.Quota.TokensPerMinute, n)
		}
		if known != nil {
			u.spend = u.spend.atLeast(known[i])
		} else {
			u.spend = u.spend.add(ticket.at, micro)
		}
	}
}

// owe counts a request that another counter admitted.
func (l *local) owe(all []Held, now time.Time, asked claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range all {
		l.of(held, now).take(held.Quota, now, asked.of(held.Quota))
	}
}

// spent returns a subject's known spend, and whether it includes the database's.
func (l *local) spent(held Held, now time.Time) (spend, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(held, now)
	return u.spend, u.loaded
}

// known returns the known spend of each subject.
func (l *local) known(all []Held, now time.Time) []spend {
	known := make([]spend, len(all))
	for i, held := range all {
		known[i], _ = l.spent(held, now)
	}
	return known
}

// learn merges the database's spend. An answer about the day before doesn't change the spend of today.
func (l *local) learn(subject Subject, known spend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u, is := l.subjects[subject]; is {
		u.spend, u.loaded = u.spend.at(later(u.spend.day, known.day)).atLeast(known), true
	}
}

// budgets returns the subjects whose spend has to be kept up to date, and forgets unused ones.
func (l *local) budgets(now time.Time) []Subject {
	l.mu.Lock()
	defer l.mu.Unlock()
	var subjects []Subject
	for subject, u := range l.subjects {
		switch {
		case now.Sub(u.used) > idle && u.running == 0 && u.held == 0:
			delete(l.subjects, subject)
		case u.hasBudget && subject.Kind != tenants.EndUserSpends: // an application may have thousands of them
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

func untilDay(now time.Time) time.Duration {
	day, _ := tenants.SpendSpan(now)
	return day.AddDate(0, 0, 1).Sub(now)
}

func untilMonth(now time.Time) time.Duration {
	_, month := tenants.SpendSpan(now)
	return month.AddDate(0, 1, 0).Sub(now)
}
