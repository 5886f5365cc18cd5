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

	pollAlone = time.Second      // a queue is looked at where notices are not heard
	pollHeard = 15 * time.Second // and where they are, in case one is lost

	// How long after a notice of a queue the next one is left out, and how long after a look at
	// a queue the next one waits: a job that comes between a look and its notice must not go
	// without one.
	noticeEvery = river.FetchCooldownMin
	lookEvery   = river.FetchCooldownDefault
	softStop    = 5 * time.Second // for jobs to end by themselves when the program stops
	hardStop    = 5 * time.Second // for those that are told to
	rescueAfter = 5 * time.Minute // a job whose process died is taken up again; longer where its timeout is

	keepDone   = time.Hour          // what went well
	keepFailed = 7 * 24 * time.Hour // abandoned jobs, for someone to look at
)

// Config is what a Runner works with.
type Config struct {
	Pool    *pgxpool.Pool
	Joined  func(ctx context.Context, tenant tenants.Tenant, fn func(tx pgx.Tx) error) error // a transaction of a tenant
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time

	// Ended is told how each job ended, after it was counted; nil if none.
	Ended func(kind jobs.Kind, outcome string)

	// ListenURL is the database past any pgbouncer, where notices of new jobs are heard. With
	// "" queues are looked at often instead.
	ListenURL string

	// Poll is how often a queue is looked at without a notice; 0: every second, or every
	// 15 seconds with a ListenURL.
	Poll time.Duration

	// Idle has the process take jobs for others to run, and run none itself.
	Idle bool
}

// Runner takes jobs and runs them. Kinds are registered before Open, jobs may come
// after it, and work begins with Start.
type Runner struct {
	config   Config
	client   *river.Client[pgx.Tx]
	workers  *river.Workers
	queues   map[string]river.QueueConfig
	periodic []*river.PeriodicJob
	passes   map[jobs.Kind]func(ctx context.Context) error
	limits   map[jobs.Kind]jobs.Limits
	shared   []shared
	wakes    map[jobs.Kind]chan struct{} // of what Every and Share have registered: each holds one value while it is woken
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

// Handle registers what does the jobs of a kind. It panics if the kind has been
// registered, as that is a mistake in the program.
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

// Every registers work of the whole cluster that comes again after each interval and
// once when the cluster starts: one process at a time does it, and not while the last
// one still does. It comes earlier once it is woken. A pass that fails is not tried again
// before the next is due.
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

// Pass does one pass of work that Every or Share has registered, now and in this process, also
// where others are to run jobs. The caller sees to it that no other pass runs meanwhile.
func (r *Runner) Pass(ctx context.Context, kind jobs.Kind) error {
	pass, known := r.passes[kind]
	if !known {
		return fmt.Errorf("pass of %q: %w", kind, errUnknown)
	}
	return pass(ctx)
}

// Open lets jobs come. It does not ask the database anything.
func (r *Runner) Open() error {
	config := &river.Config{
		Schema: schema, Workers: r.workers, PollOnly: true, FetchCooldown: noticeEvery, FetchPollInterval: cmp.Or(r.config.Poll, pollAlone),
		JobTimeout: defaultTimeout, RescueStuckJobsAfter: rescueAfter, SoftStopTimeout: softStop,
		CompletedJobRetentionPeriod: keepDone, DiscardedJobRetentionPeriod: keepFailed, CancelledJobRetentionPeriod: keepFailed,
		// Only an index's owner may rebuild it, which this login is not.
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

// Start begins to run jobs. Where others are to run them, or once they run, it does nothing. After an
// error it may be called again.
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

// Stop takes no more jobs up, lets those that run end for a few seconds, then gives
// them back for another process. It may be called twice, and without Start.
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

// errUnknown says that no such work comes again and again.
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
