package idle_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/idle"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// bench is a proxy on a database whose clock only the test moves.
type bench struct {
	t      *testing.T
	codec  wire.Codec
	db     *tenantsdb.DB
	store  *sessiondb.Store
	scope  session.Scope
	module *ipc.Module
	writer *prompt.Writer
	worker *idle.Worker
	queue  *jobsdb.Runner // does nothing before it is started
	config pipeline.Config

	mu       sync.Mutex
	now      time.Time
	outcomes []string
	ended    chan string // of each job; it never fills up

	archive archive.Originals // nil: the database's
	planner planner           // nil: the module
}

// planner plans an epoch.
type planner = func(ctx context.Context, exchange *pipeline.View) (*session.Plan, error)

const window = 60_000

func setup(t *testing.T, change ...func(*bench)) *bench {
	t.Helper()
	return setupFormat(t, anthropic.New(), change...)
}

func setupFormat(t *testing.T, codec wire.Codec, change ...func(*bench)) *bench {
	t.Helper()
	b := &bench{
		t: t, codec: codec, db: dbtest.New(t).DB, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: codec.Format()}, config: modules.Catalog().Default(),
	}
	err := b.db.InTenant(t.Context(), b.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'test')", b.scope.Workspace).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	b.boot(change...)
	return b
}

// replica returns another process on the same database and the same clock.
func (b *bench) replica() *bench {
	b.t.Helper()
	other := &bench{t: b.t, codec: b.codec, db: b.db, now: b.clock(), scope: b.scope, config: b.config}
	other.boot()
	return other
}

// boot starts the bench's process.
func (b *bench) boot(change ...func(*bench)) {
	b.t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		b.t.Fatal(err)
	}
	b.ended = make(chan string, 100)
	b.queue = jobsdb.New(jobsdb.Config{
		Pool: b.db.WorkPool(), Joined: b.db.Joined, Metrics: jobsdb.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler), Now: b.clock,
	})
	b.store, b.module = sessiondb.New(b.db, archivetest.Keys()).WithJobs(b.queue), ipc.New(counter.Message)
	b.archive, b.planner = archivedb.New(b.db, archivetest.Keys()), b.module.Plan
	if b.writer, err = prompt.NewWriter(b.store, counter, pipeline.NewChain(b.module).WithDeadline(time.Minute)); err != nil {
		b.t.Fatal(err)
	}
	b.writer.Window, b.writer.Now = window, b.clock
	for _, set := range change {
		set(b)
	}
	b.worker = idle.New(idle.Config{
		Lanes: b.writer.Resolver, Reader: b.writer.Reader, Modules: modules.Catalog(), Archive: b.archive, Store: b.store, Plan: b.planner,
		Codecs: map[conversation.Format]wire.Codec{b.codec.Format(): b.codec},
		Log:    slog.New(slog.DiscardHandler), Now: b.clock, Ended: b.end,
	})
	b.queue.Handle(sessiondb.JobPlan, jobs.Limits{}, b.worker.Plan)
	b.queue.Handle(sessiondb.JobExpirePlan, jobs.Limits{}, func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) error {
		return b.store.ExpirePlan(ctx, workspace, lane, b.clock())
	})
	if err := b.queue.Open(); err != nil {
		b.t.Fatal(err)
	}
	b.writer.PlanLater = b.worker.Later
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(after time.Duration) {
	b.mu.Lock()
	b.now = b.now.Add(after)
	b.mu.Unlock()
}

func (b *bench) end(outcome string) {
	b.mu.Lock()
	b.outcomes = append(b.outcomes, outcome)
	b.mu.Unlock()
	b.ended <- outcome
}

// became fails the test unless these are the outcomes of all jobs so far.
func (b *bench) became(want ...string) {
	b.t.Helper()
	if !slices.Equal(b.outcomes, want) {
		b.t.Fatalf("%v, want %v", b.outcomes, want)
	}
}

// waiting returns how many jobs wait in the database.
func (b *bench) waiting() int {
	b.t.Helper()
	var count int
	row := b.db.WorkPool().QueryRow(b.t.Context(), "SELECT count(*) FROM jobs.river_job WHERE kind = 'plan' AND finalized_at IS NULL")
	if err := row.Scan(&count); err != nil {
		b.t.Fatal(err)
	}
	return count
}

// send sends a body, records it as the proxy does, and has the provider answer.
func (b *bench) send(body []byte) *prompt.Prompt {
	b.t.Helper()
	written, err := b.writer.Write(b.t.Context(), prompt.Request{
		Scope: b.scope, Codec: b.codec, Config: b.config, Body: body,
		Headers: http.Header{"X-Palimpsest-Session-Id": {"s"}}, Path: "/v1/messages",
	})
	if err != nil {
		b.t.Fatal(err)
	}
	sent := written.Sent()
	seen := written.Update(b.clock())
	b.record(seen)
	written.Lane.Arrived(0, seen.Messages.Position)
	b.writer.Answered(sent, wire.Answer{Usage: wire.Usage{Reported: true, Input: 30, CacheRead: written.Exchange.Report.After}})
	seen = written.Lane.Update(b.scope, written.Exchange.Request.Model, b.clock())
	seen.Messages.Position, seen.Messages.Head = sent.Position, sent.Head
	b.record(seen)
	return written
}

func (b *bench) record(seen session.Update) {
	b.t.Helper()
	err := b.db.Together(b.t.Context(), b.scope.Workspace, func(tenant tenants.Tenant) error {
		return b.store.Record(b.t.Context(), tenant, []session.Update{seen})
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// plan does the job of the bench's only lane, as the runner would.
func (b *bench) plan() error {
	b.t.Helper()
	return b.worker.Plan(b.t.Context(), b.scope.Workspace, b.laneID())
}

// talk returns the bodies of a session that fills about three fifths of the window.
func talk(t *testing.T, format conversation.Format) [][]byte {
	t.Helper()
	turns, size := 60, 36_000
	if format == conversation.Anthropic {
		turns, size = 40, 20_000 // that count more
	}
	var bodies [][]byte
	for _, body := range sessiontest.Generate(7, sessiontest.Options{
		Format: format, Turns: turns, Parallel: true, Thinking: true, CacheMarkers: true, Reminders: true, TargetTokens: size, Varied: true,
	}).Bodies() {
		bodies = append(bodies, body)
	}
	return bodies
}
