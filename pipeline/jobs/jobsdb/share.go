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

// Share registers work that every process that runs jobs does at a pace, and once
// when it starts: the work itself sees to it that what one process does, no other does. A pass
// that fails is not tried again before the next is due.
func (r *Runner) Share(kind jobs.Kind, pace jobs.Interval, timeout time.Duration, do func(ctx context.Context) error) {
	r.config.Metrics.known(kind)
	wake := make(chan struct{}, 1)
	r.passes[kind], r.wakes[kind] = do, wake
	r.shared = append(r.shared, shared{pace: pace, wake: wake, worker: &worker{
		runner: r, kind: kind, periodic: true, limits: jobs.Limits{Timeout: timeout},
		do: func(ctx context.Context, _ tenants.WorkspaceID, _ uuid.UUID) error { return do(ctx) },
	}})
}

// startLoops begins to do what is shared and to hear what is woken, until the function that it
// returns is called, which waits for passes to end: for a while, then it ends them.
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

// loop does a pass now and again and again until no more are to be begun.
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
