package jobsdb_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
)

// Work that is shared runs in all processes at once, but in none that leaves jobs to others,
// and a process that stops gives it back.
func TestSharedWorkRunsInAllProcessesAtOnce(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	began, release := make(chan string, 10), make(chan struct{})
	start := func(name string, change ...func(*jobsdb.Config)) *process {
		process := newProcess(database, slog.New(slog.DiscardHandler), change...)
		process.Share(sweep, everyHour(), time.Hour, func(ctx context.Context) error {
			began <- name
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		process.run(t)
		return process
	}
	start("idle", func(config *jobsdb.Config) { config.Idle = true })
	first, second := start("first"), start("second")
	if got := map[string]bool{receive(t, began): true, receive(t, began): true}; !got["first"] || !got["second"] {
		t.Errorf("passes of %v, want one of each process that works", got)
	}
	close(release)
	first.await(t, sweep, "done")
	second.await(t, sweep, "done")
	if len(began) > 0 {
		t.Errorf("%s began another pass", <-began)
	}
}

func TestSharedWorkThatFailsComesAgain(t *testing.T) {
	t.Parallel()
	process := newProcess(dbtest.New(t), slog.New(slog.DiscardHandler))
	passes := 0
	process.Share(sweep, jobs.Interval{Least: time.Millisecond, Most: time.Millisecond}, time.Minute, func(context.Context) error {
		switch passes++; passes {
		case 1:
			return errors.New("the bucket is down")
		case 2:
			panic("a mistake")
		}
		return nil
	})
	process.run(t)
	for _, outcome := range []string{"failed", "failed", "done"} {
		if got := receive(t, process.ended); got != string(sweep)+" "+outcome {
			t.Errorf("a pass ended as %q, want %s", got, outcome)
		}
	}
}

// everyHour is the pace of work that does not come again during a test unless it is woken.
func everyHour() jobs.Interval { return jobs.Interval{Least: time.Millisecond, Most: time.Hour} }
