package jobsdb

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
)

// shared is work that all processes share.
type shared struct {
	*worker

	interval time.Duration
}

// Share registers work that every process that runs jobs does after each interval, and once
// when it starts: the work itself sees to it that what one process does, no other does. A pass
// that fails is not tried again before the next is due.
func (r *Runner) Share(kind jobs.Kind, interval, timeout time.Duration, do func(ctx context.Context) error) {
	r.config.Metrics.known(kind)
	r.passes[kind] = do
	r.shared = append(r.shared, shared{interval: interval, worker: &worker{
		runner: r, kind: kind, periodic: true, limits: jobs.Limits{Timeout: timeout},
		do: func(ctx context.Context, _ tenants.WorkspaceID, _ uuid.UUID) error { return do(ctx) },
	}})
}

// startShared begins to do what is shared, until the function that it returns is called, which
// waits for passes to end: for a while, then it ends them.
func (r *Runner) startShared() (stop func()) {
	taking, noMore := context.WithCancel(context.Background())
	working, end := context.WithCancel(context.Background())
	var passes sync.WaitGroup
	for _, work := range r.shared {
		passes.Go(func() { work.loop(taking, working) })
	}
	return func() {
		noMore()
		ending := time.AfterFunc(softStop, end)
		passes.Wait()
		ending.Stop()
		end()
	}
}

// loop does a pass now and after each interval until no more are to be begun.
func (s *shared) loop(taking, working context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for taking.Err() == nil {
		s.pass(working)
		select {
		case <-ticker.C:
		case <-taking.Done():
		}
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
