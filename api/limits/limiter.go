package limits

import (
	"cmp"
	"context"
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
	// DefaultPatience is how long a request waits for Redis unless the config says so.
	DefaultPatience = 100 * time.Millisecond

	// outage is how long Redis is not asked after it did not answer.
	outage = time.Second

	// upkeepEvery is how often leases are renewed and spend is read again.
	upkeepEvery = lease / 3

	// idle is how long a subject is remembered that is not used. Its rates have
	// recovered by then.
	idle = 10 * time.Minute

	loadTimeout = 2 * time.Second
)

// Config is what a Limiter works with.
type Config struct {
	// Spend returns what someone of a workspace has cost, in millionths of a dollar,
	// since a day and since a month began.
	Spend func(ctx context.Context, workspace tenants.WorkspaceID, who tenants.Spender, day, month time.Time) (inDay, inMonth int64, err error)

	// Redis is where replicas count together; nil: each counts by itself. Its
	// calls must end with their context.
	Redis redis.UniversalClient

	// Patience is how long a request waits for Redis; 0: DefaultPatience.
	Patience time.Duration

	// Alone is called for each decision that one replica makes by itself because
	// Redis does not answer; nil if no one.
	Alone func()

	Log *slog.Logger     // nil: nowhere
	Now func() time.Time // nil: time.Now
}

// Limiter lets requests begin as far as their subjects' limits allow. A subject
// without limits costs nothing.
type Limiter struct {
	config  Config
	local   *local
	shared  *shared // nil if there is no Redis
	down    atomic.Int64
	loading singleflight.Group

	mu   sync.Mutex
	live map[*Ticket][]place // under way, with what each has in Redis

	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// New returns a Limiter that is not started yet.
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

// Start renews what is under way and reads what is spent, again and again.
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

// Stop ends what Start began. It may be called twice, and without Start.
func (l *Limiter) Stop() {
	l.once.Do(func() { close(l.stop) })
	l.stopped.Wait()
}

// Admit lets a request begin that is held by the limits of some subjects, the narrowest
// first, or returns an Exceeded. The ticket is there in both cases; the caller settles
// it. Of subjects without a quota nothing is counted.
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

// Join has a request that has begun be held by more limits, or returns an Exceeded.
func (l *Limiter) Join(ctx context.Context, ticket *Ticket, held ...Held) (err error) {
	ticket.also, err = l.Admit(ctx, held...)
	return err
}

// admitShared asks Redis, if there is one that answers.
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
		// Both counters are kept up to date: Redis may be gone at the next request.
		l.local.note(ticket.held, ticket.at, result.spend)
		l.hold(ticket)
	}
	return result, true
}

// ask calls Redis; false if it does not exist, or if it does not answer. It is not asked
// again for a moment then.
func (l *Limiter) ask(ctx context.Context, call func(context.Context) error) bool {
	now := l.config.Now()
	if l.shared == nil || now.UnixNano() < l.down.Load() {
		return false
	}
	// What is counted is counted for a client that has left too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.config.Patience)
	defer cancel()
	if err := call(ctx); err != nil {
		l.down.Store(now.Add(outage).UnixNano())
		l.config.Log.WarnContext(ctx, "limits are held by this replica alone", "error", err)
		return false
	}
	return true
}

// warm returns what a subject is known to have spent. The database is asked once,
// and then in the background.
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

// load reads what a subject has spent. Requests do not fail where it cannot be read:
// they count from what is known.
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

// Upkeep renews what is under way, reads again what subjects with a budget have
// spent, and forgets those that are not used. Start calls it every half a minute.
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

// Release lets go of what requests of a process that runs no more held, which are
// recorded by now. places are what Ticket.Places returned.
func (l *Limiter) Release(ctx context.Context, places []string) {
	if len(places) == 0 {
		return
	}
	l.ask(ctx, func(ctx context.Context) error { return l.shared.release(ctx, places) })
}

// hold remembers what a request has in Redis; nothing of one that has nothing there.
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

// running returns what all requests under way have in Redis.
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
