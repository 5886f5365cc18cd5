package jobsdb

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
)

// args are the stored fields of a job. They never include the lane's content.
type args struct {
	Workspace tenants.WorkspaceID `json:"workspace"`
	Lane      uuid.UUID           `json:"lane"`

	kind jobs.Kind
}

// Kind implements river.JobArgs.
func (a args) Kind() string { return string(a.kind) }

// worker does the jobs of a kind.
type worker struct {
	river.WorkerDefaults[args]

	runner *Runner
	kind   jobs.Kind
	limits jobs.Limits
	do     jobs.Handler

	periodic bool        // registered by Every
	failing  atomic.Bool // the last periodic pass of this process failed
}

// Timeout implements river.Worker.
func (w *worker) Timeout(*river.Job[args]) time.Duration { return w.limits.Timeout }

// NextRetry implements river.Worker: after 10 s, 40 s, 90 s and so on.
func (w *worker) NextRetry(job *river.Job[args]) time.Time {
	return w.runner.config.Now().Add(time.Duration(job.Attempt*job.Attempt) * retryAfter)
}

// retryAfter is the pause after the first failure of a job.
const retryAfter = 10 * time.Second

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	config := w.runner.config
	began := config.Now()
	err := w.protected(ctx, job.Args)
	again, later := errors.AsType[jobs.Snooze](err)
	if w.periodic {
		w.tell(ctx, err)
	}
	switch {
	case err == nil:
		w.ended(done, began)
		return nil
	case later:
		w.ended(putOff, began)
		return river.JobSnooze(max(0, again.At.Sub(config.Now())))
	case errors.Is(ctx.Err(), context.Canceled): // the program ends, so another process goes on
		w.ended(givenBack, began)
		return river.JobSnooze(0)
	case w.periodic:
		w.ended(failed, began)
		return nil
	}
	outcome := failed
	level := config.Log.WarnContext
	if job.Attempt >= job.MaxAttempts {
		outcome, level = givenUp, config.Log.ErrorContext
	}
	w.ended(outcome, began)
	level(ctx, "job "+outcome, "kind", string(w.kind), "workspace", job.Args.Workspace, "lane", job.Args.Lane,
		"attempt", job.Attempt, "of", job.MaxAttempts, "error", err)
	return err
}

// ended counts a job.
func (w *worker) ended(outcome string, began time.Time) {
	config := w.runner.config
	config.Metrics.ended(w.kind, outcome, config.Now().Sub(began))
	if config.Ended != nil {
		config.Ended(w.kind, outcome)
	}
}

// tell logs when periodic work begins to fail and when it recovers.
func (w *worker) tell(ctx context.Context, err error) {
	log := w.runner.config.Log
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
	case err != nil && !w.failing.Swap(true):
		log.WarnContext(ctx, "job fails", "kind", string(w.kind), "error", err)
	case err == nil && w.failing.Swap(false):
		log.InfoContext(ctx, "job goes well again", "kind", string(w.kind))
	}
}

// protected does a job, which is the program's own work, and turns a panic into an error.
func (w *worker) protected(ctx context.Context, args args) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panicked: %v", value)
			w.runner.config.Log.ErrorContext(ctx, "job panicked", "kind", string(w.kind), "stack", string(debug.Stack()))
		}
	}()
	return w.do(tenants.OwnWork(ctx), args.Workspace, args.Lane)
}
