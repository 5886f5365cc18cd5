package jobsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
)

const (
	schema = "jobs" // of River's tables

	defaultWorkers  = 2
	defaultTimeout  = time.Minute
	defaultAttempts = 5

	pollAlone = time.Second      // interval without notices
	pollHeard = 15 * time.Second // interval with notices, in case one is lost

	// noticeEvery is how long after a notice of a queue the next one is skipped, and lookEvery the pause
	// after a look at a queue. A job that comes between a look and its notice must still cause a notice.
	noticeEvery = river.FetchCooldownMin
	lookEvery   = river.FetchCooldownDefault
	softStop    = 5 * time.Second // for jobs to end on their own when the program stops
	hardStop    = 5 * time.Second // for canceled jobs
	rescueAfter = 5 * time.Minute // a job whose process died is restarted after this time, or after its timeout if longer

	keepDone   = time.Hour          // retention of successful jobs
	keepFailed = 7 * 24 * time.Hour // retention of abandoned jobs, for inspection
)

// Config holds a Runner's dependencies.
type Config struct {
	Pool    *pgxpool.Pool
	Joined  func(ctx context.Context, tenant tenants.Tenant, fn func(tx pgx.Tx) error) error // runs fn in a tenant's transaction
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time

	// Ended receives the outcome of each job, after it was counted. Optional.
	Ended func(kind jobs.Kind, outcome string)

	// ListenURL is the direct database address without a pgbouncer, for notices of new jobs. With "" queues
	// are polled more often instead.
	ListenURL string

	// Poll is the interval for polling a queue without notices. 0 means every second, or every 15 seconds
	// with a ListenURL.
	Poll time.Duration

	// Idle makes the process only enqueue jobs, for others to run.
	Idle bool
}

// Runner enqueues jobs and runs them. Register kinds before Open. Jobs may be enqueued after it, and work
// begins with Start.
type Runner struct {
	config   Config
	client   *river.Client[pgx.Tx]
	workers  *river.Workers
	queues   map[string]river.QueueConfig
	periodic []*river.PeriodicJob
	passes   map[jobs.Kind]func(ctx context.Context) error
	limits   map[jobs.Kind]jobs.Limits
	shared   []shared
	wakes    map[jobs.Kind]chan struct{} // for Every and Share; each holds one value while woken
	crowds   crowds

	stop      sync.Once
	started   bool
	listening *listening // nil without a ListenURL
	stopLoops func()
}

// New returns a Runner without any kind.
func New(config Config) *Runner {
	return &Runner{
		config: config, workers: river.NewWorkers(), queues: map[string]river.QueueConfig{},
		limits: map[jobs.Kind]jobs.Limits{}, passes: map[jobs.Kind]func(ctx context.Context) error{},
		wakes: map[jobs.Kind]chan struct{}{},
	}
}

// Handle registers the handler of a kind. It panics if the kind is already registered, as that is a mistake
// in the program.
func (r *Runner) Handle(kind jobs.Kind, limits jobs.Limits, do jobs.Handler) {
	limits.Workers = cmp.Or(limits.Workers, defaultWorkers)
	limits.Timeout = cmp.Or(limits.Timeout, defaultTimeout)
	limits.Attempts = cmp.Or(limits.Attempts, defaultAttempts)
	r.register(&worker{runner: r, kind: kind, limits: limits, do: do})
}

func (r *Runner) register(worker *worker) {
	river.AddWorkerArgs(r.workers, args{kind: worker.kind}, worker)
	r.queues[string(worker.kind)] = river.QueueConfig{MaxWorkers: worker.limits.Workers, FetchCooldown: lookEvery}
	r.limits[worker.kind] = worker.limits
	r.config.Metrics.known(worker.kind)
}

// Every registers periodic work of the whole cluster, which also runs once when the cluster starts. One
// process at a time does it, and passes don't overlap. A wake starts the next pass early. A failed pass is
// not retried before the next one is due.
func (r *Runner) Every(kind jobs.Kind, interval, timeout time.Duration, do func(ctx context.Context) error) {
	r.register(&worker{
		runner: r, kind: kind, periodic: true, limits: jobs.Limits{Workers: 1, Timeout: timeout, Attempts: defaultAttempts},
		do: func(ctx context.Context, _ tenants.WorkspaceID, _ uuid.UUID) error { return do(ctx) },
	})
	r.passes[kind], r.wakes[kind] = do, make(chan struct{}, 1)
	r.periodic = append(r.periodic, river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
		return args{kind: kind}, r.options(jobs.Job{Kind: kind}, 1)
	}, &river.PeriodicJobOpts{ID: string(kind), RunOnStart: true}))
}

// Pass runs one pass of work registered by Every or Share, now and in this process, even if the Runner is
// idle. The caller must make sure that no other pass runs meanwhile.
func (r *Runner) Pass(ctx context.Context, kind jobs.Kind) error {
	pass, known := r.passes[kind]
	if !known {
		return fmt.Errorf("pass of %q: %w", kind, errUnknown)
	}
	return pass(tenants.OwnWork(ctx))
}

// Open allows jobs to be enqueued. It does not access the database.
func (r *Runner) Open() error {
	config := &river.Config{
		Schema: schema, Workers: r.workers, PollOnly: true, FetchCooldown: noticeEvery, FetchPollInterval: cmp.Or(r.config.Poll, pollAlone),
		JobTimeout: defaultTimeout, RescueStuckJobsAfter: rescueAfter, SoftStopTimeout: softStop,
		CompletedJobRetentionPeriod: keepDone, DiscardedJobRetentionPeriod: keepFailed, CancelledJobRetentionPeriod: keepFailed,
		// Only an index's owner may rebuild it, and this login is not the owner.
		ReindexerIndexNames: []string{}, ReindexerSchedule: river.NeverSchedule(),
		Logger: quiet(r.config.Log),
	}
	var driver riverdriver.Driver[pgx.Tx] = riverpgxv5.New(r.config.Pool)
	if r.works() {
		config.Queues, config.PeriodicJobs = r.queues, r.periodic
		if r.config.ListenURL != "" {
			var err error
			if r.listening, err = listen(r.config.Pool, r.config.ListenURL); err != nil {
				return fmt.Errorf("open jobs: %w", err)
			}
			driver, config.PollOnly, config.FetchPollInterval = r.listening, false, cmp.Or(r.config.Poll, pollHeard)
		}
	}
	client, err := river.NewClient(driver, config)
	if err != nil {
		return fmt.Errorf("open jobs: %w", err)
	}
	r.client = client
	return nil
}

// works reports whether this process runs jobs that River keeps.
func (r *Runner) works() bool { return !r.config.Idle && len(r.queues) > 0 }

// Start begins to run jobs. It is a no-op if the Runner is idle or already started. After an error it may
// be called again.
func (r *Runner) Start(ctx context.Context) error {
	if r.started || r.config.Idle || len(r.queues)+len(r.shared) == 0 {
		return nil
	}
	if r.works() {
		if err := r.client.Start(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("start jobs: %w", err)
		}
	}
	r.started, r.stopLoops = true, r.startLoops()
	return nil
}

// Stop takes no more jobs, gives running ones a few seconds to end, and then returns them for another
// process. It may be called twice, and without Start.
func (r *Runner) Stop() {
	if !r.started {
		r.listening.close()
		return
	}
	r.stop.Do(func() {
		var others sync.WaitGroup
		others.Go(r.stopLoops)
		defer r.listening.close()
		defer others.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), softStop+hardStop)
		defer cancel()
		if err := r.client.Stop(ctx); err != nil {
			r.config.Log.Warn("jobs were cut at the end", "error", err)
		}
	})
}

// Enqueue implements jobs.Queue.
func (r *Runner) Enqueue(ctx context.Context, tenant tenants.Tenant, wanted ...jobs.Job) error {
	if len(wanted) == 0 {
		return nil
	}
	workspace := tenant.Workspace()
	params := make([]river.InsertManyParams, len(wanted))
	for i, job := range wanted {
		if _, known := r.limits[job.Kind]; !known || job.Workspace != workspace {
			return fmt.Errorf("enqueue a job of kind %q for workspace %s: %w", job.Kind, job.Workspace, errRefused)
		}
		priority := r.crowds.priority(job.Kind, workspace, r.config.Now())
		params[i] = river.InsertManyParams{
			Args: args{kind: job.Kind, Workspace: job.Workspace, Lane: job.Lane}, InsertOpts: r.options(job, priority),
		}
	}
	err := r.config.Joined(ctx, tenant, func(tx pgx.Tx) error {
		_, err := r.client.InsertManyTx(ctx, tx, params)
		return err
	})
	if err != nil {
		return fmt.Errorf("enqueue %d jobs: %w", len(wanted), err)
	}
	return nil
}

// errUnknown says that no periodic or shared work of a kind is registered.
var errUnknown = errors.New("nobody registered it")

// errRefused says that a job cannot be kept.
var errRefused = errors.New("nobody handles it, or it is another workspace's")

// options returns how a job is kept.
func (r *Runner) options(job jobs.Job, priority int) *river.InsertOpts {
	return &river.InsertOpts{
		Queue: string(job.Kind), MaxAttempts: r.limits[job.Kind].Attempts, ScheduledAt: job.At, Priority: priority,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
			rivertype.JobStateRunning, rivertype.JobStateScheduled,
		}},
	}
}

// Interface guard.
var _ jobs.Queue = (*Runner)(nil)

const (
	crowdEvery = time.Minute
	// crowdFirst and crowdSecond are how many jobs of a kind a workspace may enqueue per minute before its
	// next jobs have a lower priority than those of other workspaces.
	crowdFirst  = 8
	crowdSecond = 64

	maxCrowds = 10_000 // counted workspaces
)

// crowds counts the jobs of each workspace, so that a flood of jobs from one workspace waits behind the few
// of others. River takes the jobs of a queue by priority.
type crowds struct {
	mu    sync.Mutex
	since time.Time
	jobs  map[crowd]int
}

type crowd struct {
	kind      jobs.Kind
	workspace tenants.WorkspaceID
}

// priority counts a job and returns its priority: 1 goes first, 3 last.
func (c *crowds) priority(kind jobs.Kind, workspace tenants.WorkspaceID, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil || now.Sub(c.since) >= crowdEvery || len(c.jobs) >= maxCrowds {
		c.since, c.jobs = now, map[crowd]int{}
	}
	of := crowd{kind, workspace}
	c.jobs[of]++
	switch count := c.jobs[of]; {
	case count <= crowdFirst:
		return 1
	case count <= crowdSecond:
		return 2
	default:
		return 3
	}
}

// Forget deletes the jobs of a workspace, including finished ones. It leaves running jobs: River's retention
// removes their rows.
func (r *Runner) Forget(ctx context.Context, workspace tenants.WorkspaceID) error {
	_, err := r.config.Pool.Exec(ctx, "DELETE FROM "+schema+".river_job WHERE args->>'workspace' = $1 AND state <> 'running'", workspace.String())
	if err != nil {
		return fmt.Errorf("forget jobs of workspace %s: %w", workspace, err)
	}
	return nil
}

// quiet returns a log for River's own messages, warnings and above. Workers log failed jobs themselves.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(fromWarnings{log.Handler()}) }

type fromWarnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h fromWarnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h fromWarnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return fromWarnings{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h fromWarnings) WithGroup(name string) slog.Handler {
	return fromWarnings{h.Handler.WithGroup(name)}
}

// shared is work that all processes share.
type shared struct {
	*worker

	pace jobs.Interval
	wake <-chan struct{}
}

// Share registers work that every process with jobs does at a pace, and once at its start. The work itself
// must make sure that no two processes handle the same item. A failed pass is not retried before the next one
// is due.
func (r *Runner) Share(kind jobs.Kind, pace jobs.Interval, timeout time.Duration, do func(ctx context.Context) error) {
	r.config.Metrics.known(kind)
	wake := make(chan struct{}, 1)
	r.passes[kind], r.wakes[kind] = do, wake
	r.shared = append(r.shared, shared{pace: pace, wake: wake, worker: &worker{
		runner: r, kind: kind, periodic: true, limits: jobs.Limits{Timeout: timeout},
		do: func(ctx context.Context, _ tenants.WorkspaceID, _ uuid.UUID) error { return do(ctx) },
	}})
}

// startLoops starts the loops for shared work and for wakes. The returned function stops them: it waits a
// while for passes to end, then cancels them.
func (r *Runner) startLoops() (stop func()) {
	taking, noMore := context.WithCancel(context.Background())
	working, end := context.WithCancel(context.Background())
	var passes sync.WaitGroup
	for _, work := range r.shared {
		passes.Go(func() { work.loop(taking, working) })
	}
	for kind := range r.passes {
		if _, kept := r.queues[string(kind)]; kept {
			passes.Go(func() { r.loopWoken(taking, kind) })
		}
	}
	return func() {
		noMore()
		ending := time.AfterFunc(softStop, end)
		passes.Wait()
		ending.Stop()
		end()
	}
}

// loop runs passes until taking ends.
func (s *shared) loop(taking, working context.Context) {
	for taking.Err() == nil {
		s.pass(working)
		s.rest(taking)
	}
}

// rest returns once the next pass is due, or ctx ends.
func (s *shared) rest(ctx context.Context) {
	least, most := time.NewTimer(s.pace.Least), time.NewTimer(s.pace.Most)
	defer least.Stop()
	defer most.Stop()
	select {
	case <-least.C:
	case <-ctx.Done():
		return
	}
	select {
	case <-s.wake:
	case <-most.C:
	case <-ctx.Done():
	}
}

func (s *shared) pass(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Timeout)
	defer cancel()
	began := s.runner.config.Now()
	err := s.protected(ctx, args{kind: s.kind})
	s.tell(ctx, err)
	switch {
	case err == nil:
		s.ended(done, began)
	case ctx.Err() == context.Canceled:
		s.ended(givenBack, began)
	default:
		s.ended(failed, began)
	}
}
