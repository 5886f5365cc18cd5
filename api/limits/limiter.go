package limits

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"palimpsest/tenants"
)

const (
	// DefaultPatience is the default of Config.Patience.
	DefaultPatience = 100 * time.Millisecond

	// outage is how long Redis is skipped after it did not answer.
	outage = time.Second

	// upkeepEvery is the interval for renewing leases and reading spend.
	upkeepEvery = lease / 3

	// idle is how long an unused subject is remembered. Its rates have recovered by then.
	idle = 10 * time.Minute

	loadTimeout = 2 * time.Second
)

// Config holds a Limiter's settings and dependencies.
type Config struct {
	// Spend returns the cost of a spender of a workspace, in millionths of a dollar, since a day and since a
	// month began.
	Spend func(ctx context.Context, workspace tenants.WorkspaceID, who tenants.Spender, day, month time.Time) (inDay, inMonth int64, err error)

	// Redis holds the counters that replicas share; if nil, each counts alone. Its calls must end with their
	// context.
	Redis redis.UniversalClient

	// Patience is how long a request waits for Redis; 0 means DefaultPatience.
	Patience time.Duration

	// Alone is optional. It is called for each decision that one replica makes alone because Redis does not
	// answer.
	Alone func()

	Log *slog.Logger     // nil: nowhere
	Now func() time.Time // nil: time.Now
}

// Limiter admits requests within their subjects' limits. A subject without limits costs no work.
type Limiter struct {
	config  Config
	local   *local
	shared  *shared // nil if there is no Redis
	down    atomic.Int64
	loading singleflight.Group

	mu   sync.Mutex
	live map[*Ticket][]place // under way, with their places in Redis

	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// New returns a Limiter without starting it.
func New(config Config) *Limiter {
	if config.Alone == nil {
		config.Alone = func() {}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Patience = cmp.Or(config.Patience, DefaultPatience)
	l := &Limiter{config: config, local: newLocal(), live: make(map[*Ticket][]place), stop: make(chan struct{})}
	if config.Redis != nil {
		l.shared = newShared(config.Redis)
	}
	return l
}

// Start runs Upkeep periodically.
func (l *Limiter) Start() {
	l.stopped.Go(func() {
		ticker := time.NewTicker(upkeepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.Upkeep(context.Background())
			case <-l.stop:
				return
			}
		}
	})
}

// Stop ends the work of Start. It may be called twice, and without Start.
func (l *Limiter) Stop() {
	l.once.Do(func() { close(l.stop) })
	l.stopped.Wait()
}

// Admit admits a request under the limits of some subjects, the narrowest first, or returns an Exceeded. It
// returns a ticket in both cases, which the caller settles. Subjects without a quota are not counted.
func (l *Limiter) Admit(ctx context.Context, held ...Held) (*Ticket, error) {
	ticket := &Ticket{held: limited(held)}
	if len(ticket.held) == 0 {
		return ticket, nil
	}
	ticket.id, ticket.at = uuid.New(), l.config.Now()
	known := make([]spend, len(ticket.held))
	for i, held := range ticket.held {
		known[i] = l.warm(ctx, held, ticket.at)
	}
	result, isShared := l.admitShared(ctx, ticket, known)
	if !isShared {
		result = l.local.admit(ticket.held, ticket.at)
	}
	ticket.left = result.left
	if result.kind != None {
		return ticket, result.exceeded(ticket.held)
	}
	ticket.limiter = l
	return ticket, nil
}

// Join adds limits to a request that has begun, or returns an Exceeded.
func (l *Limiter) Join(ctx context.Context, ticket *Ticket, held ...Held) (err error) {
	ticket.also, err = l.Admit(ctx, held...)
	return err
}

// admitShared asks Redis, if it is configured and answers.
func (l *Limiter) admitShared(ctx context.Context, ticket *Ticket, known []spend) (verdict, bool) {
	var result verdict
	isShared := l.ask(ctx, func(ctx context.Context) (err error) {
		result, err = l.shared.admit(ctx, ticket, known)
		return err
	})
	if !isShared {
		if l.shared != nil {
			l.config.Alone()
		}
		return verdict{}, false
	}
	if result.kind == None {
		// Both counters are kept up to date, because Redis may be gone at the next request.
		l.local.note(ticket.held, ticket.at, result.spend)
		l.hold(ticket)
	}
	return result, true
}

// ask calls Redis. It returns false without Redis, or if Redis does not answer; then it skips Redis for a
// moment.
func (l *Limiter) ask(ctx context.Context, call func(context.Context) error) bool {
	now := l.config.Now()
	if l.shared == nil || now.UnixNano() < l.down.Load() {
		return false
	}
	// Counting continues after the client has left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.config.Patience)
	defer cancel()
	if err := call(ctx); err != nil {
		l.down.Store(now.Add(outage).UnixNano())
		l.config.Log.WarnContext(ctx, "limits are held by this replica alone", "error", err)
		return false
	}
	return true
}

// warm returns a subject's known spend. It queries the database the first time, and in the background later.
func (l *Limiter) warm(ctx context.Context, held Held, now time.Time) spend {
	if !held.Quota.HasBudget() {
		return spend{}.at(now)
	}
	known, loaded := l.local.spent(held, now)
	if loaded {
		return known
	}
	subject := held.Subject
	<-l.loading.DoChan(subject.Workspace.String()+string(subject.Kind)+subject.ID, func() (any, error) {
		l.load(context.WithoutCancel(ctx), subject, now)
		return nil, nil //nolint:nilnil // what was read lies in local
	})
	known, _ = l.local.spent(held, now)
	return known
}

// load reads a subject's spend. Requests don't fail if it can't be read, because they count from the known
// spend.
func (l *Limiter) load(ctx context.Context, subject Subject, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	known := spend{}.at(now)
	day, month, err := l.config.Spend(ctx, subject.Workspace, subject.Spender, known.day, known.month)
	if err != nil {
		l.config.Log.WarnContext(ctx, "what has been spent is not known", "workspace", subject.Workspace, "by", subject.Kind, "id", subject.ID, "error", err)
	}
	known.dayMicro, known.monthMicro = day, month
	l.local.learn(subject, known)
}

// Upkeep renews requests under way, reads the spend of subjects with a budget again, and forgets unused ones.
// Start calls it every half a minute.
func (l *Limiter) Upkeep(ctx context.Context) {
	now := l.config.Now()
	if places := l.running(); len(places) > 0 && l.shared != nil {
		renewing, cancel := context.WithTimeout(ctx, loadTimeout)
		if err := l.shared.renew(renewing, places); err != nil {
			l.config.Log.WarnContext(ctx, "requests under way are not renewed", "error", err)
		}
		cancel()
	}
	for _, subject := range l.local.budgets(now) {
		l.load(ctx, subject, now)
	}
}

// Release frees the places of requests whose process has ended, because the requests are recorded by now.
// places is the result of Ticket.Places.
func (l *Limiter) Release(ctx context.Context, places []string) {
	if len(places) == 0 {
		return
	}
	l.ask(ctx, func(ctx context.Context) error { return l.shared.release(ctx, places) })
}

// hold remembers a request's places in Redis, if it has any.
func (l *Limiter) hold(ticket *Ticket) {
	var places []place
	for _, held := range ticket.held {
		isHeld := ticket.claim.of(held.Quota).micro > 0
		if held.Quota.Concurrency > 0 || isHeld {
			places = append(places, place{names: namesOf(held.Subject, ticket.at), ticket: ticket.id.String(), held: ticket.place(), isHeld: isHeld})
		}
	}
	if len(places) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.live[ticket] = places
	}
}

// running returns the places of all requests under way in Redis.
func (l *Limiter) running() []place {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []place
	for _, places := range l.live {
		all = append(all, places...)
	}
	return all
}

func (l *Limiter) letGo(ticket *Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, ticket)
}

// Subject is a spender of a workspace under limits.
type Subject struct {
	Workspace tenants.WorkspaceID
	tenants.Spender
}

// Held is a subject and its quota.
type Held struct {
	Subject Subject
	Quota   tenants.Quota
}

// limited returns the subjects that have limits.
func limited(all []Held) []Held {
	var some []Held
	for _, held := range all {
		if !held.Quota.IsUnlimited() {
			some = append(some, held)
		}
	}
	return some
}

// Budgets returns the same subjects with their budgets only.
func Budgets(all []Held) []Held {
	some := make([]Held, 0, len(all))
	for _, held := range all {
		quota := held.Quota
		held.Quota = tenants.Quota{DayMicroUSD: quota.DayMicroUSD, MonthMicroUSD: quota.MonthMicroUSD, AllowUnpriced: quota.AllowUnpriced}
		if held.Quota.HasBudget() {
			some = append(some, held)
		}
	}
	return some
}

// Remaining is the rest of a subject's limits; zero for a limit that does not exist.
type Remaining = tenants.Quota

// verdict is the decision about a request.
type verdict struct {
	kind  Kind // None if admitted
	of    int  // index of the ticket's subject whose limit is exceeded
	wait  time.Duration
	left  []Remaining // of each of them
	spend []spend     // of each, across all replicas
}

// claim is the amount that a request takes before it is sent.
type claim struct {
	prompt, answers int   // tokens
	micro           int64 // millionths of a dollar
}

// of returns the part of a claim that a quota counts.
func (c claim) of(quota tenants.Quota) claim {
	if quota.TokensPerMinute == 0 {
		c.prompt, c.answers = 0, 0
	}
	if !quota.HasBudget() {
		c.micro = 0
	}
	return c
}

// Kind is the kind of a limit.
type Kind int

// The kinds of limits, numbered as in the Redis scripts.
const (
	None Kind = iota
	Requests
	Tokens
	Concurrency
	DayBudget
	MonthBudget
	HeldBudget // of a day or a month: requests under way may use up the rest of it
)

// String returns the kind's name in metrics.
func (k Kind) String() string {
	return [...]string{"none", "requests", "tokens", "concurrency", "day_budget", "month_budget", "held_budget"}[k]
}

// Exceeded is the error for a request over a limit.
type Exceeded struct {
	Kind    Kind
	Subject Subject // owner of the limit
	Quota   tenants.Quota

	// Wait is how long until the limit allows requests again; 0 if unknown or never.
	Wait time.Duration

	// Asked is the requested number of tokens if it is more than the limit ever allows; otherwise 0.
	Asked int
}

// Error implements error.
func (e Exceeded) Error() string {
	if e.Asked > 0 {
		return fmt.Sprintf("limit of %s a minute exceeded by one request of %d", e.Kind, e.Asked)
	}
	return fmt.Sprintf("limit of %s exceeded", e.Kind)
}

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
