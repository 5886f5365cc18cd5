package idle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// Timeout bounds the work on one plan.
const Timeout = 30 * time.Second

// The outcomes of a job, for Config.Ended.
const (
	Planned = "planned" // a plan waits for the lane's next request
	Dropped = "dropped" // the lane is in use, gone or has moved on
	Useless = "useless" // there is no epoch worth planning
	Failed  = "failed"  // messages could not be read, or planning failed
)

// The reasons why there is no plan.
var (
	errMoved   = errors.New("lane is in use, gone or has moved on")
	errMissing = errors.New("the archive does not have all messages yet")
)

// Store keeps the inputs of plans, and the plans.
type Store interface {
	// ToPlan returns the input of a lane's next plan, or session.ErrNotFound.
	ToPlan(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (session.Ahead, error)

	// Find returns the lane with a head among heads, as session.Store has it.
	Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (session.Found, error)

	// SavePlan keeps a plan for the prompt that went out at sentAt. It returns session.ErrOvertaken if
	// another has gone out since.
	SavePlan(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, sentAt time.Time, plan *session.Plan) error
}

// Config holds a Worker's dependencies.
type Config struct {
	Lanes   *session.Resolver
	Reader  *session.Reader
	Modules *pipeline.Catalog
	Codecs  map[conversation.Format]wire.Codec
	Archive archive.Originals
	Store   Store
	Log     *slog.Logger
	Now     func() time.Time

	// Plan plans an epoch without committing it.
	Plan func(ctx context.Context, exchange *pipeline.View) (*session.Plan, error)

	// Ended receives the outcome of every job that was due. Optional.
	Ended func(outcome string)
}

// Worker plans epochs ahead. It has no state of its own: its inputs are in the archive and with the lane.
type Worker struct{ config Config }

// New returns a Worker.
func New(config Config) *Worker { return &Worker{config: config} }

// Later schedules the plan of a lane's epoch for due, unless another prompt of the lane follows the one of
// heat. The schedule is recorded with the lane's exchange.
func (w *Worker) Later(lane *session.Lane, heat session.CacheState, outline *pipeline.Outline, due time.Time) {
	encoded, err := outline.Bytes()
	if err != nil {
		w.config.Log.Warn("epoch is not planned ahead", "lane", lane.ID, "error", err)
		return
	}
	lane.PlanLater(session.Ahead{SentAt: heat.At, Due: due, Outline: encoded})
}

// Plan implements jobs.Handler: it plans a lane's epoch and stores the plan with the lane. It snoozes its job
// if a newer prompt of the lane is due later.
func (w *Worker) Plan(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) error {
	ahead, err := w.config.Store.ToPlan(ctx, workspace, lane)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil
	case err != nil:
		return err
	case w.config.Now().Before(ahead.Due):
		return jobs.Snooze{At: ahead.Due}
	}
	task := task{Worker: w, workspace: workspace, id: lane, ahead: ahead}
	err = task.plan(ctx)
	if ctx.Err() == nil || err == nil {
		w.ended(lane, err)
	}
	if err != nil && !settled(err) {
		return err
	}
	// While this job ran, the queue accepted no other job for the lane.
	if newer, err := w.config.Store.ToPlan(ctx, workspace, lane); err == nil && newer.SentAt.After(ahead.SentAt) {
		return jobs.Snooze{At: newer.Due}
	}
	return nil
}

// settled reports whether another attempt would have the same result.
func settled(err error) bool {
	return errors.Is(err, errMoved) || errors.Is(err, session.ErrOvertaken) || errors.Is(err, pipeline.ErrNoPlan)
}

func (w *Worker) ended(lane uuid.UUID, err error) {
	outcome := Failed
	switch {
	case err == nil:
		outcome = Planned
	case errors.Is(err, errMoved), errors.Is(err, session.ErrOvertaken):
		outcome = Dropped
	case errors.Is(err, pipeline.ErrNoPlan):
		outcome = Useless
	}
	if w.config.Ended != nil {
		w.config.Ended(outcome)
	}
	w.config.Log.Debug("plan epoch ahead", "lane", lane, "outcome", outcome, "error", err)
}

// task is a lane whose next epoch may be worth planning.
type task struct {
	*Worker

	workspace tenants.WorkspaceID
	id        uuid.UUID
	ahead     session.Ahead
}

// plan plans the epoch and leaves the plan with the lane.
func (t *task) plan(ctx context.Context) error {
	outline, err := t.config.Modules.ReadOutline(t.ahead.Outline, t.config.Codecs)
	if err != nil {
		return err
	}
	lane, err := t.hold(ctx, outline) // if the lane has moved on, the messages need not be read
	if err != nil {
		return err
	}
	lane.Unlock()
	exchange, err := t.restore(ctx, outline)
	if err != nil {
		return err
	}
	if lane, err = t.hold(ctx, outline); err != nil {
		return err
	}
	exchange.Lane.NextProjection, exchange.Lane.Attempts, exchange.Lane.Now = lane.NextNumber(), lane.Attempts(), t.config.Now()
	exchange.Lane.Anchor, exchange.Lane.Pins = lane.LastAnchor(exchange.Request.Model), lane.Pins()
	exchange.Lane.Summary, exchange.Lane.Inserts = lane.Summary(exchange.Conversation.Chain), lane.Inserts(exchange.Conversation.Chain)
	if projection := lane.Projection(exchange.Conversation.Chain); projection != nil {
		copied := *projection // the lane goes on
		exchange.Lane.Projection = &copied
	}
	lane.Unlock() // so that no request waits for a plan

	plan, err := t.config.Plan(ctx, &exchange.View)
	if err != nil {
		return err
	}
	if lane, err = t.hold(ctx, outline); err != nil {
		return err
	}
	current := lane.NextNumber() == plan.Projection.Number
	if current {
		t.config.Lanes.Planned(lane, plan) // before other processes are notified, so that this one keeps its lane
	}
	lane.Unlock()
	if !current {
		return errMoved
	}
	return t.config.Store.SavePlan(ctx, t.workspace, t.id, t.ahead.SentAt, plan)
}

// hold locks the lane, as this process knows it or as it is stored, unless a request has it or has had it
// since. The caller unlocks it.
func (t *task) hold(ctx context.Context, outline *pipeline.Outline) (*session.Lane, error) {
	lane := t.config.Lanes.Known(t.id)
	if lane == nil || lane.Heat().At.UnixMicro() < t.ahead.SentAt.UnixMicro() { // or another replica has sent its last prompt
		found, err := t.config.Store.Find(ctx, t.workspace, []conversation.Hash{outline.Head()})
		if errors.Is(err, session.ErrNotFound) || err == nil && found.Lane != t.id {
			return nil, errMoved
		}
		if err != nil {
			return nil, err
		}
		lane = found.Stored()
	}
	if !lane.TryLock() {
		return nil, errMoved
	}
	if lane.Heat().At.UnixMicro() != t.ahead.SentAt.UnixMicro() { // the store's precision
		lane.Unlock()
		return nil, errMoved
	}
	return lane, nil
}

// restore rebuilds the task's exchange from the archive.
func (t *task) restore(ctx context.Context, outline *pipeline.Outline) (*pipeline.Exchange, error) {
	entries, err := t.config.Archive.Originals(ctx, t.workspace, t.id, 0, outline.Position)
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
	body, digests, err := t.config.Reader.Read(outline.Codec(), outline.Body(messages))
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	exchange, same := outline.Restore(body, digests)
	if !same {
		return nil, errMissing
	}
	return exchange, nil
}

// Interface guard.
var _ jobs.Handler = (*Worker)(nil).Plan
