package jobsdb_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
)

// listening has a process hear of jobs, and look for them so seldom that a test would end before.
func listening(database *dbtest.Database) func(*jobsdb.Config) {
	return func(config *jobsdb.Config) { config.ListenURL, config.Poll = database.DB.ListenURL(), time.Hour }
}

// A job of one process is begun by another that looks for jobs once an hour: it hears of it.
func TestProcessHearsOfJobsOfOthers(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	ran := make(chan tenants.WorkspaceID, 10)
	do := func(_ context.Context, workspace tenants.WorkspaceID, _ uuid.UUID) error {
		ran <- workspace
		return nil
	}
	process := newProcess(database, slog.New(slog.DiscardHandler), listening(database))
	process.Handle(plan, jobs.Limits{}, do)
	process.Every(sweep, time.Hour, time.Minute, func(context.Context) error { return nil })
	process.run(t)
	process.await(t, sweep, "done") // every queue is looked at once by then, or is about to be

	asking := newProcess(database, slog.New(slog.DiscardHandler), func(config *jobsdb.Config) { config.Idle = true })
	asking.Handle(plan, jobs.Limits{}, do)
	asking.open(t)
	for range 3 {
		workspace := tenants.NewWorkspaceID()
		enqueue(t, asking, jobs.Job{Kind: plan, Workspace: workspace, Lane: uuid.New()})
		if got := receive(t, ran); got != workspace {
			t.Errorf("the job of workspace %s ran, want that of %s", got, workspace)
		}
	}
}

// What comes once an hour comes at once when it is woken, also while a pass is under way, and
// after one that failed.
func TestWokenWorkComesAtOnce(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(*process, func(context.Context) error){
		"every":  func(p *process, do func(context.Context) error) { p.Every(sweep, time.Hour, time.Hour, do) },
		"shared": func(p *process, do func(context.Context) error) { p.Share(sweep, everyHour(), time.Hour, do) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := dbtest.New(t)
			process := newProcess(database, slog.New(slog.DiscardHandler), listening(database))
			began, end := make(chan bool, 10), make(chan error)
			register(process, func(context.Context) error { began <- true; return <-end })
			process.run(t)
			receive(t, began)
			process.Wake(sweep, "no such kind")
			process.Wake(sweep)
			end <- errors.New("not yet")
			receive(t, began) // woken while the pass before was under way
			end <- nil
			process.await(t, sweep, "done")
			process.Wake(sweep)
			receive(t, began)
			end <- nil
			process.await(t, sweep, "done")
			if len(began) > 0 {
				t.Error("a pass came that nobody woke")
			}
		})
	}
}

// A process whose connection for notices is cut hears of jobs again on another one.
func TestProcessHearsOfJobsAgainOnceItsConnectionWasCut(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	process := newProcess(database, slog.New(slog.DiscardHandler), listening(database))
	ran := make(chan bool, 100)
	process.Handle(plan, jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { ran <- true; return nil })
	process.run(t)
	const cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query ILIKE 'LISTEN %' AND datname = current_database()"
	connections := 0
	if err := database.Owner(t).QueryRow(t.Context(), cut).Scan(&connections); err != nil || connections != 1 {
		t.Fatalf("%d connections were cut, want 1: %v", connections, err)
	}
	for deadline := time.After(wait); ; {
		enqueue(t, process, jobs.Job{Kind: plan, Workspace: tenants.NewWorkspaceID(), Lane: uuid.New()})
		select {
		case <-ran:
			return
		case <-time.After(100 * time.Millisecond):
		case <-deadline:
			t.Fatal("no job ran")
		}
	}
}
