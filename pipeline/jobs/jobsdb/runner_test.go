package jobsdb_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
)

const (
	plan  jobs.Kind = "plan"
	sweep jobs.Kind = "sweep"

	wait = 30 * time.Second // for what is sure to come
)

// process is one process that runs jobs of a database.
type process struct {
	*jobsdb.Runner

	registry *prometheus.Registry
	ended    chan string // kind and outcome of each job
}

func newProcess(database *dbtest.Database, log *slog.Logger, change ...func(*jobsdb.Config)) *process {
	registry := prometheus.NewRegistry()
	config := jobsdb.Config{
		Pool: database.DB.WorkPool(), Joined: database.DB.Joined, Metrics: jobsdb.NewMetrics(registry), Log: log, Now: time.Now,
	}
	for _, set := range change {
		set(&config)
	}
	p := &process{registry: registry, ended: make(chan string, 1_000)}
	config.Ended = func(kind jobs.Kind, outcome string) { p.ended <- string(kind) + " " + outcome }
	p.Runner = jobsdb.New(config)
	return p
}

// await waits until a job of a kind ended so.
func (p *process) await(t *testing.T, kind jobs.Kind, outcome string) {
	t.Helper()
	const most = 1_000
	for range most {
		if receive(t, p.ended) == string(kind)+" "+outcome {
			return
		}
	}
	t.Fatalf("of %d jobs none of kind %s was %s", most, kind, outcome)
}

// open lets jobs come without running any.
func (p *process) open(t *testing.T) {
	t.Helper()
	if err := p.Open(); err != nil {
		t.Fatal(err)
	}
}

// begin runs jobs until the test ends.
func (p *process) begin(t *testing.T) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
}

func (p *process) counted(t *testing.T, kind jobs.Kind, outcome string) int {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if family.GetName() == "palimpsest_jobs_total" && labels["kind"] == string(kind) && labels["outcome"] == outcome {
				return int(metric.GetCounter().GetValue())
			}
		}
	}
	t.Fatalf("%s %s is not counted", kind, outcome)
	return 0
}

func (p *process) run(t *testing.T) {
	t.Helper()
	p.open(t)
	p.begin(t)
}

// receive returns what comes next.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(wait):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// states returns how many jobs of the database have each state.
func states(t *testing.T, database *dbtest.Database) map[string]int {
	t.Helper()
	rows, err := database.DB.WorkPool().Query(t.Context(), "SELECT state::text, count(*) FROM jobs.river_job GROUP BY 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	states := map[string]int{}
	for rows.Next() {
		var state string
		var count int
		if err := rows.Scan(&state, &count); err != nil {
			t.Fatal(err)
		}
		states[state] = count
	}
	return states
}

func enqueue(t *testing.T, queue jobs.Queue, job jobs.Job) {
	t.Helper()
	enqueueFor(t, job.Workspace, queue, job)
}

func enqueueFor(t *testing.T, tenant tenants.Tenant, queue jobs.Queue, job jobs.Job) {
	t.Helper()
	if err := queue.Enqueue(t.Context(), tenant, job); err != nil {
		t.Fatal(err)
	}
}

func TestJobIsDoneOnceByOneOfTwoProcesses(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	type lane struct {
		workspace tenants.WorkspaceID
		lane      uuid.UUID
	}
	ran := make(chan lane, 100)
	first, second := newProcess(database, slog.New(slog.DiscardHandler)), newProcess(database, slog.New(slog.DiscardHandler))
	for _, process := range []*process{first, second} {
		process.Handle(plan, jobs.Limits{}, func(_ context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
			ran <- lane{workspace, id}
			return nil
		})
		process.run(t)
	}
	wanted := map[lane]bool{}
	for range 20 {
		next := lane{tenants.NewWorkspaceID(), uuid.New()}
		wanted[next] = true
		enqueue(t, first, jobs.Job{Kind: plan, Workspace: next.workspace, Lane: next.lane})
	}
	for range 20 {
		got := receive(t, ran)
		if !wanted[got] {
			t.Fatalf("%v was done twice or never asked for", got)
		}
		delete(wanted, got)
	}
	first.Stop()
	second.Stop()
	if sum := first.counted(t, plan, "done") + second.counted(t, plan, "done"); sum != 20 || len(ran) > 0 {
		t.Errorf("%d jobs were done, want 20, %d more ran", sum, len(ran))
	}
}

// S28
func TestJobSurvivesTheProcessThatTookIt(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	ignore := func(context.Context, tenants.WorkspaceID, uuid.UUID) error { return nil }
	before := newProcess(database, slog.New(slog.DiscardHandler))
	before.Handle(plan, jobs.Limits{}, ignore)
	before.open(t) // and dies before it runs anything
	workspace, lane := tenants.NewWorkspaceID(), uuid.New()
	enqueue(t, before, jobs.Job{Kind: plan, Workspace: workspace, Lane: lane})

	after := newProcess(database, slog.New(slog.DiscardHandler))
	ran := make(chan uuid.UUID, 1)
	after.Handle(plan, jobs.Limits{}, func(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID) error {
		ran <- lane
		return nil
	})
	after.run(t)
	if got := receive(t, ran); got != lane {
		t.Errorf("lane %s was worked on, want %s", got, lane)
	}
}

func TestJobExistsOnlyIfTheTransactionIsCommitted(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	process := newProcess(database, slog.New(slog.DiscardHandler))
	process.Handle(plan, jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { return nil })
	process.open(t)
	workspace := tenants.NewWorkspaceID()
	undone := errors.New("undone")
	err := database.DB.Together(t.Context(), workspace, func(tenant tenants.Tenant) error {
		enqueueFor(t, tenant, process, jobs.Job{Kind: plan, Workspace: workspace, Lane: uuid.New()})
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if got := states(t, database); len(got) > 0 {
		t.Errorf("%v is left of a transaction that was rolled back", got)
	}
	err = database.DB.Together(t.Context(), workspace, func(tenant tenants.Tenant) error {
		enqueueFor(t, tenant, process, jobs.Job{Kind: plan, Workspace: workspace, Lane: uuid.New()})
		if got := states(t, database); len(got) > 0 {
			t.Errorf("%v is seen before the commit", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := states(t, database); got["available"] != 1 {
		t.Errorf("%v after the commit", got)
	}
}

func TestLaneHasOneWaitingJobOfAKind(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	process := newProcess(database, slog.New(slog.DiscardHandler))
	for _, kind := range []jobs.Kind{plan, sweep} {
		process.Handle(kind, jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { return nil })
	}
	process.open(t)
	workspace, lane := tenants.NewWorkspaceID(), uuid.New()
	at := time.Now().Add(time.Hour)
	for range 3 {
		enqueue(t, process, jobs.Job{Kind: plan, Workspace: workspace, Lane: lane, At: at})
	}
	enqueue(t, process, jobs.Job{Kind: sweep, Workspace: workspace, Lane: lane})
	enqueue(t, process, jobs.Job{Kind: plan, Workspace: workspace, Lane: uuid.New()})
	if got := states(t, database); got["scheduled"] != 1 || got["available"] != 2 {
		t.Errorf("%v wait, want one later and two now", got)
	}
}

func TestUnknownKindAndForeignWorkspaceAreRefused(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	process := newProcess(database, slog.New(slog.DiscardHandler))
	process.Handle(plan, jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { return nil })
	process.open(t)
	workspace := tenants.NewWorkspaceID()
	if err := process.Enqueue(t.Context(), workspace, jobs.Job{Kind: "nobody", Workspace: workspace}); err == nil {
		t.Error("a job that nobody handles was taken")
	}
	if err := process.Enqueue(t.Context(), workspace, jobs.Job{Kind: plan, Workspace: tenants.NewWorkspaceID()}); err == nil {
		t.Error("another workspace's job was taken")
	}
}

func TestPeriodicWorkRunsInOneProcess(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	var inside, most atomic.Int32
	ran := make(chan struct{}, 100)
	for range 2 {
		process := newProcess(database, slog.New(slog.DiscardHandler))
		process.Every(sweep, time.Second, time.Minute, func(context.Context) error {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			ran <- struct{}{}
			return nil
		})
		process.run(t)
	}
	for range 3 {
		receive(t, ran)
	}
	if most.Load() != 1 {
		t.Errorf("%d processes at once", most.Load())
	}
}
