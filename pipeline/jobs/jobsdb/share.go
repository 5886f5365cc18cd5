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
