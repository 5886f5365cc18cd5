package jobsdb

import (
	"context"
	"time"

	"github.com/riverqueue/river/rivertype"

	"palimpsest/pipeline/jobs"
)

// wakeAgain is the pause before a kind is woken again whose pass was under way: what it was woken for may
// have come after that pass looked.
const wakeAgain = time.Second

// Wake has the next pass of kinds that Every or Share have registered come early: there is
// something for them. It never waits, and does nothing where others are to run jobs.
func (r *Runner) Wake(kinds ...jobs.Kind) {
	for _, kind := range kinds {
		select {
		case r.wakes[kind] <- struct{}{}:
		default:
		}
	}
}

// loopWoken keeps a job of what Every has registered each time that it is woken, until ctx ends.
func (r *Runner) loopWoken(ctx context.Context, kind jobs.Kind) {
	for {
		select {
		case <-r.wakes[kind]:
		case <-ctx.Done():
			return
		}
		for !r.bring(ctx, kind) {
			select {
			case <-time.After(wakeAgain):
			case <-ctx.Done():
				return
			}
		}
	}
}

// bring has a pass of a kind come, and reports whether nothing more is to be done: while one is under
// way, another has to be brought.
func (r *Runner) bring(ctx context.Context, kind jobs.Kind) bool {
	kept, err := r.client.Insert(ctx, args{kind: kind}, r.options(jobs.Job{Kind: kind}, 1))
	if err != nil {
		if ctx.Err() == nil {
			r.config.Log.WarnContext(ctx, "a job is late: it could not be woken", "kind", string(kind), "error", err)
		}
		return true
	}
	return !kept.UniqueSkippedAsDuplicate || kept.Job.State != rivertype.JobStateRunning
}
