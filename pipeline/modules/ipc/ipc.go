package ipc

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// Name is the module's name in configs, headers and events.
const Name = "ipc"

// RenderVersion numbers the texts that L1 to L3 make of a turn. As long as it stays the same, the
// same originals, levels and settings give the same bytes.
const RenderVersion = 9

// sessionPinned is the reason to leave a pinned session alone.
const sessionPinned = "session_pinned"

// Module is the module ipc. It has no state of its own and is safe for
// concurrent use.
type Module struct {
	count  func(conversation.Message) int
	memory *memory // nil without Remembering
}

// New returns the module; count counts o200k tokens as the exchange's digests were counted.
func New(count func(conversation.Message) int) *Module { return &Module{count: count} }

// Remembering returns the module with a memory, so that it reads each turn only once. It is for
// exchanges of one history under one config, one after the other, in which no two turns share a
// name. Only then is a turn's L2 independent of later turns.
func (m *Module) Remembering() *Module {
	return &Module{count: m.count, memory: newMemory()}
}

// Name implements pipeline.Module.
func (*Module) Name() string { return Name }

// Process makes a new projection if there is an occasion for one, enough can be freed, and it is
// worth its price; otherwise the exchange keeps its projection.
func (m *Module) Process(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	size := exchange.Size(exchange.Lane.Projection)
	why := occasionOf(exchange, size)
	if why == noOccasion && exchange.Request.ReadOnly == "" && exchange.Limits.Limit > 0 && exchange.Class.Kind != client.Compaction {
		return nil, nil //nolint:nilnil // nothing changes
	}
	config, draft := configOf(exchange), exchange.Draft(Name)
	switch {
	case exchange.Request.ReadOnly != "":
		draft.Report.Compression = pipeline.Bypassed
		skip(draft, exchange.Request.ReadOnly)
		return draft, nil
	case exchange.Limits.Limit == 0 && !isHeavy(exchange):
		skip(draft, "unknown_model")
		return draft, nil
	case exchange.Class.Kind == client.Compaction && fitsWhole(exchange):
		// The client summarizes the original conversation.
		draft.Lane.Projection = nil
		draft.Restart()
		skip(draft, "client_compaction")
		return draft, nil
	case why == noOccasion:
		return draft, nil
	case exchange.Lane.Pinned && exchange.Lane.Order == nil:
		skip(draft, sessionPinned)
		return draft, nil
	case config.DeepestLevel == 0:
		skip(draft, "deepest_level")
		return draft, nil
	case !config.ArchiveToBlob:
		skip(draft, "archive_off")
		return draft, nil
	}
	if why == atTarget && isTooSoon(exchange, size) {
		skip(draft, costGate)
		return draft, nil
	}
	if reason := held(exchange, size, why); reason != "" {
		reportHeld(draft, size, why, reason)
		return draft, nil
	}
	if err := m.try(ctx, draft, size, why); err != nil {
		return nil, err
	}
	return draft, nil
}

// try makes an epoch of a draft of size tokens if one is worth making.
func (m *Module) try(ctx context.Context, draft *pipeline.Draft, size int, why occasion) error {
	exchange := &draft.View
	epoch := ahead(exchange, size)
	if epoch == nil {
		var err error
		if epoch, err = m.plan(ctx, exchange, size); err != nil {
			return giveUp(ctx, draft, size, why, err)
		}
	}
	epoch.projection.Reason = why.reason()
	epoch.prediction = predict(exchange, epoch)
	if why == atTarget && !epoch.prediction.worth || why == brokeEven && !hasBrokenEven(exchange, epoch) {
		putOff(draft, costGate, size)
		draft.Event("skipped", costGate, epoch.prediction.counts())
		return nil
	}
	if why == atTarget && epoch.prediction.outlives {
		putOff(draft, endsSoon, size)
		draft.Event("skipped", endsSoon, epoch.prediction.counts())
		return nil
	}
	// The originals must be durable before the shortened prompt is sent.
	err := exchange.Committer.Commit(ctx, epoch.projection)
	if errors.Is(err, session.ErrWarm) {
		skip(draft, "warm_elsewhere")
		return nil
	}
	if errors.Is(err, session.ErrPinned) {
		skip(draft, sessionPinned)
		return nil
	}
	if err != nil {
		brokeOff(ctx, draft, notArchived, size, err)
		return fmt.Errorf("archive originals: %w", err)
	}
	draft.Lane.Projection = &epoch.projection
	epoch.report(draft)
	cameTrue(draft, epoch)
	return nil
}

// giveUp ends an attempt that led to no plan.
func giveUp(ctx context.Context, draft *pipeline.Draft, size int, why occasion, err error) error {
	reason := notPlanned
	switch {
	case errors.Is(err, errNothingToFree):
		reason = nothingToFree
	case errors.Is(err, errWorse):
		reason = notSmaller
		draft.Event("rejected", err.Error(), nil)
	default:
		brokeOff(ctx, draft, reason, size, err)
		return fmt.Errorf("plan epoch: %w", err)
	}
	switch why {
	case idle, brokeEven: // not needed
		putOff(draft, reason, size)
		return nil
	case asked:
		skip(draft, reason)
		putOff(draft, reason, size)
		return nil
	default:
	}
	unreachable(draft, size)
	cameToNothing(draft, reason, size)
	return nil
}

// Interface guard.
var _ pipeline.Module = (*Module)(nil)
