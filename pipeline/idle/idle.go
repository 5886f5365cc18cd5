package idle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

const (
	most     = 4096             // tasks that may wait
	interval = time.Second      // between two looks at them
	timeout  = 30 * time.Second // for one plan
)

// The reasons why there is no plan.
var (
	errBusy    = errors.New("lane is busy, gone or has moved on")
	errMissing = errors.New("the archive does not have all messages yet")
)

// Originals reads the messages of a lane from index from to to (excluded), as far
// as they are archived.
type Originals interface {
	Originals(ctx context.Context, workspace, lane uuid.UUID, from, to int) ([]archive.Entry, error)
}

// Planner plans an epoch without making it.
type Planner interface {
	Plan(ctx context.Context, exchange *pipeline.Exchange) (*session.Plan, error)
}

// Config is what a Worker needs.
type Config struct {
	Lanes   *session.Resolver
	Reader  *session.Reader
	Archive Originals
	Planner Planner
	Log     *slog.Logger
	Now     func() time.Time

	// Stopping reports whether the process is about to end: then nothing more is
	// planned. nil: it never is.
	Stopping func() bool
}

// Worker plans epochs ahead, one after the other. It keeps no bodies: what it
// plans from is in the archive.
type Worker struct {
	config Config

	mu      sync.Mutex
	waiting waiting
	stats   Stats

	ctx     context.Context //nolint:containedctx // ends with the worker
	cancel  context.CancelFunc
	started sync.Once
	done    sync.WaitGroup
}

// Stats counts what became of tasks since the start.
type Stats struct {
	Planned int // a plan waits for the lane's next request, or did
	Dropped int // there were too many tasks, or the lane was busy or had moved on
	Useless int // there was no epoch worth planning
	Failed  int // messages could not be read, or planning failed
	Waiting int // tasks now
}

// New returns a Worker that is not started yet.
func New(config Config) *Worker {
	ctx, cancel := context.WithCancel(context.Background())
	return &Worker{config: config, waiting: waiting{byLane: map[uuid.UUID]*task{}}, ctx: ctx, cancel: cancel}
}

// Start begins to plan what is due.
func (w *Worker) Start() {
	w.started.Do(func() { w.done.Go(w.run) })
}

// Stop ends a plan that is being made and waits for the worker; nothing is planned
// any more. It may be called twice, and without Start.
func (w *Worker) Stop() {
	w.cancel()
	w.done.Wait()
}

// Later has an epoch planned for a lane when due has come, unless another prompt
// of the lane follows the one of heat. It replaces the lane's earlier task, never
// blocks, and drops the task if too many wait.
func (w *Worker) Later(lane *session.Lane, heat session.Heat, outline *pipeline.Outline, due time.Time) {
	if w.ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting.put(&task{lane: lane.ID, heat: heat, outline: outline, due: due}, most) {
		w.stats.Dropped++
	}
}

// Stats returns what became of tasks.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := w.stats
	stats.Waiting = len(w.waiting.queue)
	return stats
}

func (w *Worker) run() {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.Pass()
		case <-w.ctx.Done():
			return
		}
	}
}

// Pass plans everything that is due.
func (w *Worker) Pass() {
	for w.ctx.Err() == nil && (w.config.Stopping == nil || !w.config.Stopping()) {
		w.mu.Lock()
		next := w.waiting.take(w.config.Now())
		w.mu.Unlock()
		if next == nil {
			return
		}
		err := w.plan(next)
		w.count(err)
		if err != nil && !errors.Is(err, errBusy) && w.ctx.Err() == nil {
			w.config.Log.Debug("plan epoch ahead", "lane", next.lane, "error", err)
		}
	}
}

func (w *Worker) count(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.stats.Planned++
	case errors.Is(err, errBusy), w.ctx.Err() != nil:
		w.stats.Dropped++
	case errors.Is(err, pipeline.ErrNoPlan):
		w.stats.Useless++
	default:
		w.stats.Failed++
	}
}

// plan plans the epoch of a task and leaves the plan with its lane. A panic is an
// error.
func (w *Worker) plan(task *task) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("planner panicked: %v", value)
		}
	}()
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	exchange, err := w.restore(ctx, task)
	if err != nil {
		return err
	}
	lane, err := w.hold(task)
	if err != nil {
		return err
	}
	exchange.NextProjection, exchange.Attempts, exchange.Now = lane.NextNumber(), lane.Attempts(), w.config.Now()
	exchange.Anchor, exchange.Pins = lane.LastAnchor(exchange.Request.Model), lane.Pins()
	exchange.Summary, exchange.Inserts = lane.Summary(exchange.Chain), lane.Inserts(exchange.Chain)
	if projection := lane.Projection(exchange.Chain); projection != nil {
		copied := *projection // the lane goes on
		exchange.Projection = &copied
	}
	lane.Unlock() // no request waits for a plan

	plan, err := w.config.Planner.Plan(ctx, exchange)
	if err != nil {
		return err
	}
	if lane, err = w.hold(task); err != nil {
		return err
	}
	defer lane.Unlock()
	if lane.NextNumber() != plan.Projection.Number {
		return errBusy
	}
	w.config.Lanes.Planned(lane, plan)
	return nil
}

// hold takes the lane of a task, unless a request has it or has had it since. The
// caller unlocks it.
func (w *Worker) hold(task *task) (*session.Lane, error) {
	lane := w.config.Lanes.Known(task.lane)
	if lane == nil || !lane.TryLock() {
		return nil, errBusy
	}
	if !lane.Heat().At.Equal(task.heat.At) {
		lane.Unlock()
		return nil, errBusy
	}
	return lane, nil
}

// restore makes the task's exchange again out of the archive.
func (w *Worker) restore(ctx context.Context, task *task) (*pipeline.Exchange, error) {
	lane, err := w.hold(task) // or the messages need not be read
	if err != nil {
		return nil, err
	}
	lane.Unlock()
	outline := task.outline
	entries, err := w.config.Archive.Originals(ctx, outline.Workspace(), task.lane, 0, outline.Position)
	if err != nil {
		return nil, fmt.Errorf("read originals: %w", err)
	}
	messages := make([]json.RawMessage, len(entries))
	for i, entry := range entries {
		if entry.Index != i {
			return nil, errMissing
		}
		messages[i] = entry.Raw
	}
	if len(messages) != outline.Position {
		return nil, errMissing
	}
	body, digests, err := w.config.Reader.Read(outline.Codec(), outline.Body(messages))
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	exchange, same := outline.Restore(body, digests)
	if !same {
		return nil, errMissing
	}
	return exchange, nil
}
