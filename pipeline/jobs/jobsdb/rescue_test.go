package jobsdb_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
)

// begun has every job of a lane be one that a process took so long ago, and that no
// process has ended or given back since.
func begun(t *testing.T, database *dbtest.Database, lane uuid.UUID, ago time.Duration) {
	t.Helper()
	done, err := database.DB.WorkPool().Exec(t.Context(), `UPDATE jobs.river_job
		SET state = 'running', attempt = 1, attempted_at = now() - make_interval(secs => $2), attempted_by = '{killed}'
		WHERE args->>'lane' = $1`, lane.String(), ago.Seconds())
	if err != nil || done.RowsAffected() != 1 {
		t.Fatalf("%d jobs of the lane: %v", done.RowsAffected(), err)
	}
}

// S28: a job that a killed process was at is taken up by another five minutes after it
// began; one that may still be at work is left to the process that does it.
func TestWhatAKilledProcessHadBegunIsTakenUp(t *testing.T) {
	t.Parallel()
	const long = jobs.Kind("long")
	database := dbtest.New(t)
	// What is tried again waits by this clock, and so not at all.
	process := newProcess(database, slog.New(slog.DiscardHandler), func(config *jobsdb.Config) {
		config.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	})
	ran := make(chan uuid.UUID, 10)
	note := func(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID) error {
		ran <- lane
		return nil
	}
	process.Handle(plan, jobs.Limits{}, note)
	process.Handle(long, jobs.Limits{Timeout: time.Hour}, note)
	process.open(t)

	workspace := tenants.NewWorkspaceID()
	abandoned, slow, slower := uuid.New(), uuid.New(), uuid.New()
	for lane, job := range map[uuid.UUID]struct {
		kind jobs.Kind
		ago  time.Duration
	}{abandoned: {plan, 6 * time.Minute}, slow: {plan, 4 * time.Minute}, slower: {long, 6 * time.Minute}} {
		enqueue(t, process, jobs.Job{Kind: job.kind, Workspace: workspace, Lane: lane})
		begun(t, database, lane, job.ago)
	}
	process.begin(t)
	if lane := receive(t, ran); lane != abandoned {
		t.Errorf("lane %s is worked on first, want %s", lane, abandoned)
	}
	process.await(t, plan, "done")
	var left int
	err := database.DB.WorkPool().QueryRow(t.Context(), "SELECT count(*) FROM jobs.river_job WHERE state = 'running' AND attempt = 1 AND args->>'lane' = ANY($1)",
		[]string{slow.String(), slower.String()}).Scan(&left)
	if err != nil || left != 2 || len(ran) > 0 {
		t.Errorf("%d of two that may be at work are left alone, and %d ran (%v)", left, len(ran), err)
	}
}
