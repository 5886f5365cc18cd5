package jobsdb_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
)

// A process that leaves jobs to others does a pass where it is asked to, and no other.
func TestPassIsDoneAtOnceWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	process := newProcess(dbtest.New(t), slog.New(slog.DiscardHandler), func(config *jobsdb.Config) { config.Idle = true })
	done, broken := 0, errors.New("the pass failed")
	process.Every(sweep, time.Hour, time.Minute, func(ctx context.Context) error {
		if !tenants.VisibleIn(ctx).All {
			t.Error("the program's own work does not see everything")
		}
		done++
		return broken
	})
	process.run(t)

	if err := process.Pass(t.Context(), sweep); !errors.Is(err, broken) || done != 1 {
		t.Errorf("%d passes, %v", done, err)
	}
	if err := process.Pass(t.Context(), plan); err == nil || done != 1 {
		t.Errorf("a pass that nobody registered: %v", err)
	}
}
