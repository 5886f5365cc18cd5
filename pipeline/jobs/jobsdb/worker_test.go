package jobsdb_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
)

// text collects what is logged.
type text struct {
	mu sync.Mutex
	bytes.Buffer
}

// Write implements io.Writer.
func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Buffer.Write(p)
}

func (t *text) has(part string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Count(t.String(), part)
}

// S28
func TestFailedJobIsTriedAgainAndAtLastGivenUp(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	for name, c := range map[string]struct {
		attempts int
		state    string
		logged   string
	}{
		"again":     {attempts: 2, state: "retryable", logged: `msg="job failed"`},
		"abandoned": {attempts: 1, state: "discarded", logged: `msg="job abandoned"`},
	} {
		kind := jobs.Kind(strings.ReplaceAll(name, " ", "_"))
		log := new(text)
		process := newProcess(database, slog.New(slog.NewTextHandler(log, nil)))
		process.Handle(kind, jobs.Limits{Attempts: c.attempts}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error {
			panic("broken handler")
		})
		process.run(t)
		workspace := tenants.NewWorkspaceID()
		enqueue(t, process, jobs.Job{Kind: kind, Workspace: workspace, Lane: uuid.New()})
		process.await(t, kind, map[bool]string{true: "abandoned", false: "failed"}[c.attempts == 1])
		process.Stop()
		var state string
		var text string
		err := database.DB.WorkPool().QueryRow(t.Context(), "SELECT state::text, errors::text FROM jobs.river_job WHERE kind = $1", string(kind)).
			Scan(&state, &text)
		if err != nil || state != c.state || !strings.Contains(text, "broken handler") {
			t.Errorf("%s: state %s, errors %s (%v)", name, state, text, err)
		}
		if log.has(c.logged) != 1 || log.has("stack=") != 1 {
			t.Errorf("%s: log\n%s", name, log)
		}
	}
}

func TestJobComesAgainWhenItsHandlerSays(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	process := newProcess(database, slog.New(slog.DiscardHandler))
	at := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	process.Handle(plan, jobs.Limits{Attempts: 1}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { return jobs.Snooze{At: at} })
	process.run(t)
	enqueue(t, process, jobs.Job{Kind: plan, Workspace: tenants.NewWorkspaceID()})
	workspace := tenants.NewWorkspaceID()
	enqueue(t, process, jobs.Job{Kind: plan, Workspace: workspace})
	process.await(t, plan, "put off")
	process.Stop()
	var due time.Time
	row := database.DB.WorkPool().QueryRow(t.Context(), "SELECT max(scheduled_at) FROM jobs.river_job WHERE state = 'scheduled'")
	if err := row.Scan(&due); err != nil || due.Sub(at).Abs() > time.Minute {
		t.Errorf("due at %v, want %v (%v)", due, at, err)
	}
}

// S28
func TestStopGivesBackWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	before := newProcess(database, slog.New(slog.DiscardHandler))
	began := make(chan struct{}, 1)
	before.Handle(plan, jobs.Limits{Attempts: 1}, func(ctx context.Context, _ tenants.WorkspaceID, _ uuid.UUID) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	before.run(t)
	enqueue(t, before, jobs.Job{Kind: plan, Workspace: tenants.NewWorkspaceID()})
	receive(t, began)
	before.Stop()
	before.Stop()
	if got := before.counted(t, plan, "given back"); got != 1 {
		t.Errorf("%d given back", got)
	}

	after := newProcess(database, slog.New(slog.DiscardHandler))
	ran := make(chan struct{}, 1)
	after.Handle(plan, jobs.Limits{Attempts: 1}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error {
		ran <- struct{}{}
		return nil
	})
	after.run(t)
	receive(t, ran) // its only attempt was not used up
}

func TestStormOfOneWorkspaceWaitsBehindOthers(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	process := newProcess(database, slog.New(slog.DiscardHandler))
	loud, quiet := tenants.NewWorkspaceID(), tenants.NewWorkspaceID()
	var order []tenants.WorkspaceID
	all := make(chan struct{})
	process.Handle(plan, jobs.Limits{Workers: 1}, func(_ context.Context, workspace tenants.WorkspaceID, _ uuid.UUID) error {
		if order = append(order, workspace); len(order) == 103 { // one worker: no one else writes
			close(all)
		}
		return nil
	})
	process.open(t)
	storm := make([]jobs.Job, 100)
	for i := range storm {
		storm[i] = jobs.Job{Kind: plan, Workspace: loud, Lane: uuid.New()}
	}
	if err := process.Enqueue(t.Context(), loud, storm...); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		enqueue(t, process, jobs.Job{Kind: plan, Workspace: quiet, Lane: uuid.New()})
	}
	process.begin(t)
	receive(t, all)
	for place, workspace := range order {
		if workspace == quiet && place > 20 {
			t.Errorf("the quiet workspace's job came as number %d", place+1)
		}
	}
}

func TestIdleProcessTakesJobsAndRunsNone(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	web := newProcess(database, slog.New(slog.DiscardHandler), func(c *jobsdb.Config) { c.Idle = true })
	worker := newProcess(database, slog.New(slog.DiscardHandler))
	var wrong atomic.Int32
	ran := make(chan struct{}, 1)
	web.Handle(plan, jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { wrong.Add(1); return nil })
	worker.Handle(plan, jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { ran <- struct{}{}; return nil })
	web.run(t)
	worker.run(t)
	enqueue(t, web, jobs.Job{Kind: plan, Workspace: tenants.NewWorkspaceID()})
	receive(t, ran)
	if wrong.Load() != 0 {
		t.Error("an idle process ran a job")
	}
}

func TestPeriodicWorkThatFailsIsToldOfOnce(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	log := new(text)
	process := newProcess(database, slog.New(slog.NewTextHandler(log, nil)))
	ran := make(chan struct{}, 100)
	var well atomic.Bool
	process.Every(sweep, time.Second, time.Minute, func(context.Context) error {
		defer func() { ran <- struct{}{} }()
		if well.Load() {
			return nil
		}
		return errors.New("bucket is down")
	})
	process.run(t)
	receive(t, ran)
	receive(t, ran)
	well.Store(true)
	receive(t, ran)
	receive(t, ran)
	process.Stop()
	if log.has("bucket is down") != 1 || log.has("job goes well again") != 1 || process.counted(t, sweep, "failed") < 2 {
		t.Errorf("log\n%s", log)
	}
	if got := states(t, database); got["discarded"]+got["retryable"] > 0 {
		t.Errorf("failed passes are kept: %v", got)
	}
}
