package jobsdb_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// Jobs of requests and periodic jobs run with both logins behind a pgbouncer in transaction
// mode.
func TestJobsRunBehindPgbouncer(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	app, worker := database.PooledURLs(t, 4)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: app, WorkerURL: worker})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	process := newProcess(database, slog.New(slog.DiscardHandler), func(config *jobsdb.Config) { config.Pool, config.Joined = db.WorkPool(), db.Joined })
	ran := make(chan tenants.WorkspaceID, 10)
	process.Handle(plan, jobs.Limits{}, func(_ context.Context, workspace tenants.WorkspaceID, _ uuid.UUID) error {
		ran <- workspace
		return nil
	})
	process.Every(sweep, time.Hour, time.Minute, func(context.Context) error { return nil })
	process.run(t)
	workspace := tenants.NewWorkspaceID()
	enqueue(t, process, jobs.Job{Kind: plan, Workspace: workspace, Lane: uuid.New()})
	if got := receive(t, ran); got != workspace {
		t.Errorf("workspace %s, want %s", got, workspace)
	}
	process.await(t, sweep, "done")
}

// S2: requests enqueue jobs of their own workspace, without duplicates, and cannot read or add
// jobs of another.
func TestRequestsEnqueueJobsForTheirWorkspaceOnly(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	process := newProcess(database, slog.New(slog.DiscardHandler))
	process.Handle(plan, jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { return nil })
	process.open(t)
	mine, other := jobs.Job{Kind: plan, Workspace: tenants.NewWorkspaceID(), Lane: uuid.New()}, jobs.Job{Kind: plan, Workspace: tenants.NewWorkspaceID(), Lane: uuid.New()}
	for _, job := range []jobs.Job{mine, other, mine} {
		enqueue(t, process, job)
	}
	if got := states(t, database); got["available"] != 2 {
		t.Errorf("jobs %v, want 2 available", got)
	}
	err := database.DB.Joined(t.Context(), mine.Workspace, func(tx pgx.Tx) error {
		var seen, foreign int
		err := tx.QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE args->>'workspace' <> $1) FROM jobs.river_job", mine.Workspace.String()).Scan(&seen, &foreign)
		if seen != 1 || foreign != 0 {
			t.Errorf("%d jobs visible, %d of another workspace", seen, foreign)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = database.DB.Joined(t.Context(), mine.Workspace, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO jobs.river_job (kind, max_attempts, args) VALUES ('plan', 1, jsonb_build_object('workspace', $1::text))`, other.Workspace)
		return err
	})
	if failure, is := errors.AsType[*pgconn.PgError](err); !is || failure.Code != "42501" {
		t.Errorf("a job of another workspace: %v, want 42501", err)
	}
}
