package idle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/idle"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
	"palimpsest/tenants"
)

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
				if written = b.send(body); written.Exchange.Lane.Projection != nil {
					t.Fatalf("compressed too early: %+v", written.Exchange.Report)
				}
				b.pass(10 * time.Second)
			}
			if _, again := errors.AsType[jobs.Snooze](b.plan()); !again || b.waiting() != 1 {
				t.Fatalf("planned while the cache is warm, or %d jobs for one lane", b.waiting())
			}
			b.became()
			b.pass(4 * time.Minute)
			if err := b.plan(); err != nil {
				t.Fatal(err)
			}
			b.became(idle.Planned)
			planned := written.Lane.Plan().Projection
			if err := b.plan(); err != nil || !reflect.DeepEqual(written.Lane.Plan().Projection, planned) { // S28: done twice, it comes to the same
				t.Fatalf("planned twice: %+v, want %+v (%v)", written.Lane.Plan().Projection, planned, err)
			}
			client := *written.Exchange
			client.Lane.Anchor = written.Lane.LastAnchor(client.Request.Model)
			want, err := b.module.Plan(t.Context(), &client.View)
			if err != nil || planned.Chain != want.Projection.Chain || !reflect.DeepEqual(planned.Parts, want.Projection.Parts) {
				t.Errorf("from the archive %d messages in %d parts, from the client %d in %d (%v)",
					planned.Covers, len(planned.Parts), want.Projection.Covers, len(want.Projection.Parts), err)
			}
			b.pass(2 * time.Minute)

			got := b.send(bodies[last]).Exchange

			if got.Lane.Projection == nil || got.Lane.Projection.Reason != session.ReasonIdle || !reflect.DeepEqual(got.Lane.Projection.Parts, planned.Parts) {
				t.Errorf("not what was planned: %+v", got.Report)
			}
			if share := float64(got.Report.After) / float64(got.Limits.Limit); share > 0.575 || got.Report.Compression != pipeline.Epoch {
				t.Errorf("down to %.3f: %+v", share, got.Report)
			}
			if written.Lane.Plan() != nil {
				t.Error("the plan is still there")
			}
			if left, err := b.store.Find(t.Context(), b.scope.Workspace, got.Conversation.Chain[1:]); err != nil || left.Plan != nil {
				t.Errorf("in the store, too (%v)", err)
			}
		})
	}
}

// C6: a job that waits when its process dies is done after the restart, once, and
// whichever replica gets the next request uses the plan.
func TestAPlanOutlivesTheProcessThatAskedForIt(t *testing.T) {
	t.Parallel()
	first := setup(t)
	last := nearly(first) // and the process is gone
	first.pass(4 * time.Minute)

	second := first.replica()
	if err := second.queue.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.queue.Stop)
	await(t, second.ended)
	second.queue.Stop()
	second.became(idle.Planned)
	if left := second.waiting(); left != 0 {
		t.Errorf("%d jobs are left", left)
	}

	third := first.replica()
	third.pass(2 * time.Minute)
	planner := counted(third)
	got := third.send(last).Exchange
	if got.Lane.Projection == nil || got.Lane.Projection.Reason != session.ReasonIdle || got.Lane.Plan == nil || planner.calls != 0 {
		t.Fatalf("no plan was found: %+v", got.Report)
	}
	if !reflect.DeepEqual(got.Lane.Projection.Parts, got.Lane.Plan.Projection.Parts) {
		t.Error("not what was planned")
	}
}

// A replica that has the lane in memory hears of a plan that another made.
func TestAPlanOfAnotherReplicaIsHeardOf(t *testing.T) {
	t.Parallel()
	first := setup(t)
	last := nearly(first)
	first.pass(4 * time.Minute)
	heard := make(chan string, 10)
	listener := first.db.NewListener(slog.New(slog.DiscardHandler))
	listener.Handle(sessiondb.PlanChannel, func(payload string) { heard <- payload }, func() {})
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)
	second := first.replica()
	if err := second.plan(); err != nil {
		t.Fatal(err)
	}
	if payload := await(t, heard); payload != fmt.Sprintf("%s/%s/1", first.scope.Workspace, first.laneID()) {
		t.Fatalf("heard %q", payload)
	}
	first.writer.Resolver.PlanChanged(first.laneID(), 1)
	first.pass(2 * time.Minute)
	if got := first.send(last).Exchange; got.Lane.Plan == nil || got.Lane.Projection == nil || got.Lane.Projection.Reason != session.ReasonIdle {
		t.Errorf("no plan was found: %+v", got.Report)
	}
}

// S28: what nobody goes on with does not stay for ever, and is deleted once.
func TestAPlanThatNobodyUsesIsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nearly(b)
	b.pass(4 * time.Minute)
	if err := b.plan(); err != nil {
		t.Fatal(err)
	}
	lane := b.laneID()
	expire := func() error { return b.store.ExpirePlan(t.Context(), b.scope.Workspace, lane, b.clock()) }
	again, later := errors.AsType[jobs.Snooze](expire())
	if !later || again.At.Sub(b.clock()) < 6*24*time.Hour {
		t.Errorf("again at %v", again.At)
	}
	b.pass(again.At.Sub(b.clock()))
	if err := expire(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.ToPlan(t.Context(), b.scope.Workspace, lane); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("still there (%v)", err)
	}
	if err := expire(); err != nil {
		t.Errorf("nothing to delete: %v", err)
	}
}

// counting plans with another planner and counts.
type counting struct {
	plan planner

	calls  int
	during func() // runs while it plans; nil if none
	err    error
}

// Plan is the planner.
func (c *counting) Plan(ctx context.Context, exchange *pipeline.View) (*session.Plan, error) {
	c.calls++
	plan, err := c.plan(ctx, exchange)
	if c.during != nil {
		c.during()
	}
	if c.err != nil {
		return nil, c.err
	}
	return plan, err
}

func counted(b *bench) *counting {
	c := &counting{plan: b.planner}
	b.planner = c.Plan
	return c
}

// nearly sends a session up to its last body and returns that.
func nearly(b *bench) []byte {
	bodies := talk(b.t, conversation.Anthropic)
	last := len(bodies) - 1
	b.send(bodies[last-1])
	return bodies[last]
}

func TestALaneThatHasMovedOnIsPlannedLater(t *testing.T) {
	t.Parallel()
	var planner *counting
	b := setup(t, func(b *bench) { planner = counted(b) })
	last := nearly(b)
	b.pass(4 * time.Minute)
	b.send(last)
	again, later := errors.AsType[jobs.Snooze](b.plan())
	if !later || planner.calls != 0 || !again.At.Equal(b.clock().Add(4*time.Minute)) {
		t.Errorf("%d plans, again %v", planner.calls, again)
	}

	b.writer.Resolver.Missed() // what is forgotten is read
	b.pass(4 * time.Minute)
	if err := b.plan(); err != nil || planner.calls != 1 {
		t.Errorf("forgotten: %d plans (%v)", planner.calls, err)
	}
	b.became(idle.Planned)
}

// A request is never kept waiting, and what it makes of the lane counts.
func TestALaneInUseIsLeftAlone(t *testing.T) {
	t.Parallel()
	var planner *counting
	b := setup(t, func(b *bench) { planner = counted(b) })
	nearly(b)
	lane := b.lane()
	if err := lane.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.pass(4 * time.Minute)
	err := b.plan()
	lane.Unlock()
	if err != nil || planner.calls != 0 {
		t.Errorf("%d plans (%v)", planner.calls, err)
	}
	b.became(idle.Dropped)

	t.Run("also while it is planned for", func(t *testing.T) {
		var planner *counting
		b := setup(t, func(b *bench) { planner = counted(b) })
		last := nearly(b)
		planner.during = func() { b.send(last) }
		b.pass(4 * time.Minute)
		// The new prompt's own job was not taken while this one ran.
		if _, later := errors.AsType[jobs.Snooze](b.plan()); !later || planner.calls != 1 || b.lane().Plan() != nil {
			t.Errorf("%d plans, later %v", planner.calls, later)
		}
		b.became(idle.Dropped)
	})
	t.Run("also while another process has it", func(t *testing.T) {
		var planner *counting
		b := setup(t, func(b *bench) { planner = counted(b) })
		last := nearly(b)
		b.pass(4 * time.Minute)
		other := b.replica()
		var sent *prompt.Prompt
		planner.during = func() { sent = other.send(last) }
		if again, later := errors.AsType[jobs.Snooze](b.plan()); !later || !again.At.Equal(b.clock().Add(4*time.Minute)) || planner.calls != 1 {
			t.Errorf("%d plans, again %v", planner.calls, again)
		}
		if found, err := b.store.Find(t.Context(), b.scope.Workspace, sent.Exchange.Conversation.Chain[1:]); err != nil || found.Plan != nil {
			t.Errorf("a plan is kept for a prompt that is not the last (%v)", err)
		}
		b.became(idle.Dropped)
	})
}

// laneID returns the lane of the bench's session.
func (b *bench) laneID() uuid.UUID {
	b.t.Helper()
	page, err := b.store.Browser().Sessions(tenants.OwnWork(b.t.Context()), b.scope.Workspace, session.Filter{})
	if err != nil || len(page.Sessions) != 1 {
		b.t.Fatalf("%d sessions, %v", len(page.Sessions), err)
	}
	detail, err := b.store.Browser().Session(tenants.OwnWork(b.t.Context()), b.scope.Workspace, page.Sessions[0].ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return detail.Lanes[0].ID
}

func (b *bench) lane() *session.Lane { return b.writer.Resolver.Known(b.laneID()) }

func TestNothingIsPlannedWhereThereIsNoNeed(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*bench){
		"a small prompt":     func(b *bench) { b.writer.Window = 4 * window },
		"compression is off": func(b *bench) { pipeline.Change[ipc.Config](&b.config).DeepestLevel = 0 },
		"no archive":         func(b *bench) { pipeline.Change[ipc.Config](&b.config).ArchiveToBlob = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, set)
			nearly(b)
			if waiting := b.waiting(); waiting != 0 {
				t.Errorf("%d jobs wait", waiting)
			}
			if err := b.plan(); err != nil { // nor is a job that came by mistake a failure
				t.Error(err)
			}
		})
	}
}

// broken is an archive that fails.
type broken struct{ entries int }

// Originals implements idle.Originals.
func (a broken) Originals(context.Context, tenants.WorkspaceID, uuid.UUID, int, int) ([]archive.Entry, error) {
	if a.entries == 0 {
		return nil, errors.New("connection refused")
	}
	entries := make([]archive.Entry, a.entries)
	for i := range entries {
		entries[i] = archive.Entry{Index: i, Raw: []byte(`{"role":"user","content":"other"}`)}
	}
	return entries, nil
}

// E3: what fails on the way leaves the lane without a plan, nothing else; it is tried
// again unless it would come to the same.
func TestWhatFailsIsCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   func(*bench)
		want  string
		retry bool
	}{
		"the archive is down":       {func(b *bench) { b.archive = broken{} }, idle.Failed, true},
		"messages are missing":      {func(b *bench) { b.archive = broken{entries: 3} }, idle.Failed, true},
		"they are not the lane's":   {func(b *bench) { b.archive = broken{entries: 1_000} }, idle.Failed, true},
		"the planner fails":         {func(b *bench) { counted(b).err = errors.New("broken") }, idle.Failed, true},
		"there is nothing to gain":  {func(b *bench) { pipeline.Change[ipc.Config](&b.config).MinClear = 0.9 }, idle.Useless, false},
		"the planner has no answer": {func(b *bench) { counted(b).err = pipeline.ErrNoPlan }, idle.Useless, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.set)
			last := nearly(b)
			b.pass(4 * time.Minute)
			if err := b.plan(); (err != nil) != c.retry {
				t.Error(err)
			}
			b.became(c.want)
			b.pass(2 * time.Minute)
			if written := b.send(last); pipeline.SettingsOf[ipc.Config](b.config).MinClear < 0.5 && written.Exchange.Report.Compression != pipeline.Epoch {
				t.Errorf("%+v", written.Exchange.Report)
			}
		})
	}
}

// A job that the end of the program cuts off is no outcome: it is done again.
func TestAStopEndsAPlan(t *testing.T) {
	t.Parallel()
	began := make(chan string, 1)
	b := setup(t, func(b *bench) {
		b.planner = func(ctx context.Context, _ *pipeline.View) (*session.Plan, error) {
			began <- "began"
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	nearly(b)
	b.pass(4 * time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	lane := b.laneID()
	go func() { result <- b.worker.Plan(ctx, b.scope.Workspace, lane) }()
	await(t, began)
	cancel()
	if err := await(t, result); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.became()
}

// await waits for a signal as long as a test may take.
func await[T any](t *testing.T, signal <-chan T) T {
	t.Helper()
	select {
	case value := <-signal:
		return value
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
