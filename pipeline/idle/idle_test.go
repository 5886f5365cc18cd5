package idle_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/idle"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/pipeline/wire/wiregen"
)

// bench is a proxy on a database whose clock only the test moves.
type bench struct {
	t      *testing.T
	codec  wire.Codec
	store  *sessiondb.Store
	scope  session.Scope
	module *ipc.Module
	writer *prompt.Writer
	worker *idle.Worker
	config pipeline.Config

	mu  sync.Mutex
	now time.Time

	archive  idle.Originals // nil: the database's
	planner  idle.Planner   // nil: the module
	stopping bool
}

const window = 60_000

func setup(t *testing.T, change ...func(*bench)) *bench {
	t.Helper()
	return setupFormat(t, anthropic.New(), change...)
}

func setupFormat(t *testing.T, codec wire.Codec, change ...func(*bench)) *bench {
	t.Helper()
	door := dbtest.New(t).DB
	workspace := uuid.New()
	err := door.InTenant(t.Context(), workspace, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'test')", workspace).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		t: t, codec: codec, store: sessiondb.New(door), module: ipc.New(counter), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		scope: session.Scope{Workspace: workspace, APIKey: uuid.New(), Format: codec.Format()}, config: pipeline.DefaultConfig(),
	}
	b.archive, b.planner = archivedb.New(door), b.module
	if b.writer, err = prompt.NewWriter(b.store, counter, pipeline.NewChain(b.module)); err != nil {
		t.Fatal(err)
	}
	b.writer.Window, b.writer.Now = window, b.clock
	for _, set := range change {
		set(b)
	}
	b.worker = idle.New(idle.Config{
		Lanes: b.writer.Resolver, Reader: b.writer.Reader, Archive: b.archive, Planner: b.planner,
		Log: slog.New(slog.DiscardHandler), Now: b.clock, Stopping: func() bool { return b.stopping },
	})
	t.Cleanup(b.worker.Stop)
	b.writer.Ahead = b.worker
	return b
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
	seen := written.Seen(b.clock())
	if err := b.store.Record(b.t.Context(), b.scope.Workspace, []session.Seen{seen}); err != nil {
		b.t.Fatal(err)
	}
	written.Lane.Arrived(0, seen.Position)
	b.writer.Answered(sent, wire.Answer{Usage: wire.Usage{Reported: true, Input: 30, CacheRead: written.Exchange.Report.After}})
	return written
}

// talk returns the bodies of a session that fills about three fifths of the window.
func talk(t *testing.T, format conversation.Format) [][]byte {
	t.Helper()
	turns, size := 60, 36_000
	if format == conversation.Anthropic {
		turns, size = 40, 20_000 // that count more
	}
	var bodies [][]byte
	for _, body := range wiregen.Generate(7, wiregen.Options{
		Format: format, Turns: turns, Parallel: true, Thinking: true, CacheMarkers: true, Reminders: true, TargetTokens: size, Varied: true,
	}).Bodies() {
		bodies = append(bodies, body)
	}
	return bodies
}

// C1, C6, C7: the first request after the cache went cold finds its epoch planned:
// out of the archive, the same that the lane's last request would have come to.
func TestTheEpochIsPlannedBeforeTheRequestComes(t *testing.T) {
	t.Parallel()
	for _, codec := range []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New()} {
		t.Run(string(codec.Format()), func(t *testing.T) {
			t.Parallel()
			b := setupFormat(t, codec)
			bodies := talk(t, codec.Format())
			last := len(bodies) - 1
			var written *prompt.Prompt
			for _, body := range bodies[last-5 : last] {
				if written = b.send(body); written.Exchange.Projection != nil {
					t.Fatalf("compressed too early: %+v", written.Exchange.Report)
				}
				b.pass(10 * time.Second)
			}
			b.worker.Pass()
			if stats := b.worker.Stats(); stats.Planned != 0 || stats.Waiting != 1 {
				t.Fatalf("planned while the cache is warm: %+v", stats)
			}
			b.pass(4 * time.Minute)
			b.worker.Pass()
			if stats := b.worker.Stats(); stats != (idle.Stats{Planned: 1}) {
				t.Fatalf("%+v", stats)
			}
			planned := written.Lane.Plan().Projection
			client := *written.Exchange
			client.Anchor = written.Lane.LastAnchor(client.Request.Model)
			want, err := b.module.Plan(t.Context(), &client)
			if err != nil || planned.Chain != want.Projection.Chain || !reflect.DeepEqual(planned.Parts, want.Projection.Parts) {
				t.Errorf("from the archive %d messages in %d parts, from the client %d in %d (%v)",
					planned.Covers, len(planned.Parts), want.Projection.Covers, len(want.Projection.Parts), err)
			}
			b.pass(2 * time.Minute)

			got := b.send(bodies[last]).Exchange

			if got.Projection == nil || got.Projection.Reason != session.ReasonIdle || !reflect.DeepEqual(got.Projection.Parts, planned.Parts) {
				t.Errorf("not what was planned: %+v", got.Report)
			}
			if share := float64(got.Report.After) / float64(got.Limit); share > 0.575 || got.Report.Compression != pipeline.Epoch {
				t.Errorf("down to %.3f: %+v", share, got.Report)
			}
			if written.Lane.Plan() != nil {
				t.Error("the plan is still there")
			}
		})
	}
}

// counting plans with another planner and counts.
type counting struct {
	idle.Planner

	calls  int
	during func() // runs while it plans; nil: nothing
	err    error
}

// Plan implements idle.Planner.
func (c *counting) Plan(ctx context.Context, exchange *pipeline.Exchange) (*session.Plan, error) {
	c.calls++
	plan, err := c.Planner.Plan(ctx, exchange)
	if c.during != nil {
		c.during()
	}
	if c.err != nil {
		return nil, c.err
	}
	return plan, err
}

func counted(b *bench) *counting {
	c := &counting{Planner: b.planner}
	b.planner = c
	return c
}

// nearly sends a session up to its last body and returns that.
func nearly(b *bench) []byte {
	bodies := talk(b.t, conversation.Anthropic)
	last := len(bodies) - 1
	b.send(bodies[last-1])
	return bodies[last]
}

func TestALaneThatHasMovedOnIsNotPlanned(t *testing.T) {
	t.Parallel()
	var planner *counting
	b := setup(t, func(b *bench) { planner = counted(b) })
	last := nearly(b)
	b.pass(4 * time.Minute)
	b.send(last) // its own task comes later
	b.worker.Pass()
	if stats := b.worker.Stats(); planner.calls != 0 || stats.Waiting != 1 {
		t.Errorf("%d plans, %+v", planner.calls, stats)
	}

	b.writer.Resolver.ForgetAll()
	b.pass(4 * time.Minute)
	b.worker.Pass()
	if stats := b.worker.Stats(); planner.calls != 0 || stats.Dropped != 1 {
		t.Errorf("forgotten: %d plans, %+v", planner.calls, stats)
	}
}

// A request is never kept waiting, and what it makes of the lane counts.
func TestALaneInUseIsLeftAlone(t *testing.T) {
	t.Parallel()
	var planner *counting
	b := setup(t, func(b *bench) { planner = counted(b) })
	nearly(b)
	lane := b.lane()
	lane.Lock()
	b.pass(4 * time.Minute)
	b.worker.Pass()
	lane.Unlock()
	if stats := b.worker.Stats(); planner.calls != 0 || stats != (idle.Stats{Dropped: 1}) {
		t.Errorf("%d plans, %+v", planner.calls, stats)
	}

	t.Run("also while it is planned for", func(t *testing.T) {
		var planner *counting
		b := setup(t, func(b *bench) { planner = counted(b) })
		last := nearly(b)
		planner.during = func() { b.send(last) }
		b.pass(4 * time.Minute)
		b.worker.Pass()
		if stats := b.worker.Stats(); planner.calls != 1 || stats.Dropped != 1 || b.lane().Plan() != nil {
			t.Errorf("%d plans, %+v", planner.calls, stats)
		}
	})
}

// lane returns the lane of the bench's session.
func (b *bench) lane() *session.Lane {
	b.t.Helper()
	page, err := b.store.Sessions(b.t.Context(), b.scope.Workspace, session.Filter{})
	if err != nil || len(page.Sessions) != 1 {
		b.t.Fatalf("%d sessions, %v", len(page.Sessions), err)
	}
	detail, err := b.store.Session(b.t.Context(), b.scope.Workspace, page.Sessions[0].ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.writer.Resolver.Known(detail.Lanes[0].ID)
}

func TestNothingIsPlannedWhereThereIsNoNeed(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*bench){
		"a small prompt":     func(b *bench) { b.writer.Window = 4 * window },
		"compression is off": func(b *bench) { b.config.IPC.DeepestLevel = 0 },
		"no archive":         func(b *bench) { b.config.IPC.ArchiveToBlob = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, set)
			nearly(b)
			if stats := b.worker.Stats(); stats.Waiting != 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// broken is an archive that fails.
type broken struct{ entries int }

// Originals implements idle.Originals.
func (a broken) Originals(context.Context, uuid.UUID, uuid.UUID, int, int) ([]archive.Entry, error) {
	if a.entries == 0 {
		return nil, errors.New("connection refused")
	}
	entries := make([]archive.Entry, a.entries)
	for i := range entries {
		entries[i] = archive.Entry{Index: i, Raw: []byte(`{"role":"user","content":"other"}`)}
	}
	return entries, nil
}

// E3: what fails on the way leaves the lane without a plan, nothing else.
func TestWhatFailsIsCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*bench)
		want idle.Stats
	}{
		"the archive is down":       {func(b *bench) { b.archive = broken{} }, idle.Stats{Failed: 1}},
		"messages are missing":      {func(b *bench) { b.archive = broken{entries: 3} }, idle.Stats{Failed: 1}},
		"they are not the lane's":   {func(b *bench) { b.archive = broken{entries: 1_000} }, idle.Stats{Failed: 1}},
		"the planner fails":         {func(b *bench) { counted(b).err = errors.New("broken") }, idle.Stats{Failed: 1}},
		"the planner panics":        {func(b *bench) { counted(b).during = func() { panic("broken") } }, idle.Stats{Failed: 1}},
		"there is nothing to gain":  {func(b *bench) { b.config.IPC.MinClear = 0.9 }, idle.Stats{Useless: 1}},
		"the process is stopping":   {func(b *bench) { b.stopping = true }, idle.Stats{Waiting: 1}},
		"the planner has no answer": {func(b *bench) { counted(b).err = pipeline.ErrNoPlan }, idle.Stats{Useless: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.set)
			last := nearly(b)
			b.pass(4 * time.Minute)
			b.worker.Pass()
			if stats := b.worker.Stats(); stats != c.want {
				t.Errorf("%+v", stats)
			}
			b.pass(2 * time.Minute)
			if written := b.send(last); b.config.IPC.MinClear < 0.5 && written.Exchange.Report.Compression != pipeline.Epoch {
				t.Errorf("%+v", written.Exchange.Report)
			}
		})
	}
}

func TestOnlySoManyTasksWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lanes := make([]*session.Lane, 5_000)
	due := b.clock().Add(time.Hour)
	for i := range lanes {
		lanes[i] = &session.Lane{ID: uuid.New()}
		b.worker.Later(lanes[i], session.Heat{}, nil, due)
	}
	b.worker.Later(lanes[0], session.Heat{}, nil, due) // replaces its own
	if stats := b.worker.Stats(); stats != (idle.Stats{Waiting: 4096, Dropped: 904}) {
		t.Errorf("%+v", stats)
	}
	b.worker.Stop()
	b.worker.Later(&session.Lane{ID: uuid.New()}, session.Heat{}, nil, due)
	if stats := b.worker.Stats(); stats.Waiting+stats.Dropped != 5_000 {
		t.Errorf("after the end: %+v", stats)
	}
}

func TestTheWorkerRunsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	planned := make(chan struct{})
	b := setup(t, func(b *bench) { counted(b).during = func() { close(planned) } })
	nearly(b)
	b.pass(4 * time.Minute)
	b.worker.Start()
	b.worker.Start()
	await(t, planned)
	b.worker.Stop()
	b.worker.Stop()
	if stats := b.worker.Stats(); stats.Waiting != 0 {
		t.Errorf("%+v", stats)
	}
}

func TestAStopEndsAPlan(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	b := setup(t, func(b *bench) {
		b.planner = plannerFunc(func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		})
	})
	nearly(b)
	b.pass(4 * time.Minute)
	b.worker.Start()
	await(t, began)
	b.worker.Stop()
	if stats := b.worker.Stats(); stats != (idle.Stats{Dropped: 1}) {
		t.Errorf("%+v", stats)
	}
}

// await waits for a signal as long as a test may take.
func await(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was planned")
	}
}

// plannerFunc is a planner that comes to no plan.
type plannerFunc func(ctx context.Context) error

// Plan implements idle.Planner.
func (f plannerFunc) Plan(ctx context.Context, _ *pipeline.Exchange) (*session.Plan, error) {
	return nil, f(ctx)
}
