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
	return pass(ctx)
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
