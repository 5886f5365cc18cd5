package jobsdb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"palimpsest/pipeline/jobs"
)

// listening is River's driver on a pool that receives notices on a direct connection.
type listening struct {
	*riverpgxv5.Driver

	direct *pgxpool.Pool // River takes its connection from this pool and keeps it
}

// listen returns a driver on a pool that receives notices at an address. It does not connect.
func listen(pool *pgxpool.Pool, address string) (*listening, error) {
	direct, err := pgxpool.New(context.Background(), address)
	if err != nil {
		return nil, errors.New("the URL for notices is no PostgreSQL URL") // the cause would show the password
	}
	return &listening{Driver: riverpgxv5.New(pool), direct: direct}, nil
}

// GetListener implements riverdriver.Driver.
func (l *listening) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return riverpgxv5.New(l.direct).GetListener(params)
}

func (l *listening) close() {
	if l != nil {
		l.direct.Close()
	}
}

// wakeAgain is the pause before another wake of a kind whose pass was under way, since that pass may have
// looked before the reason for the wake arose.
const wakeAgain = time.Second

// Wake starts the next pass of kinds registered by Every or Share early. It never blocks, and is a no-op if
// the Runner is idle.
func (r *Runner) Wake(kinds ...jobs.Kind) {
	for _, kind := range kinds {
		select {
		case r.wakes[kind] <- struct{}{}:
		default:
		}
	}
}

// loopWoken enqueues a job of a kind registered by Every for each wake, until ctx ends.
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

// bring enqueues a pass of a kind and reports whether the wake is handled. It is not while another pass is
// under way.
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
