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

// RenderVersion numbers the texts that L1 to L3 make of a turn. The same
// originals, levels and settings give the same bytes as long as it stays.
const RenderVersion = 4

// Counter counts the o200k tokens of a message.
type Counter interface {
	Message(message conversation.Message) int
}

// Module is the module ipc. It has no state of its own and is safe for
// concurrent use.
type Module struct {
	counter Counter
	memory  memory // nil: it remembers nothing
}

// New returns the module; counter counts as the exchange's digests were counted.
func New(counter Counter) *Module { return &Module{counter: counter} }

// Remembering returns the module with a memory: what it has made of a turn it does not
// make again. It is for exchanges of one history under one config, one after the other,
// of which no turn uses a name that another one has: there what L2 leaves of a
// turn does not depend on what comes after it.
func (m *Module) Remembering() *Module {
	return &Module{counter: m.counter, memory: memory{}}
}

// Name implements pipeline.Module.
func (*Module) Name() string { return Name }

// Process makes a new projection if there is an occasion for one, enough can be
// freed, and it is worth its price; otherwise the exchange keeps the projection it
// has. An error leaves the exchange as it was.
func (m *Module) Process(ctx context.Context, exchange *pipeline.Exchange) error {
	config, limit := configOf(exchange), exchange.Limit
	if err := m.point(exchange); err != nil {
		return fmt.Errorf("look for results that were said before: %w", err)
	}
	switch {
	case exchange.Request.Frozen != "":
		exchange.Report.Compression = pipeline.Bypassed
		skip(exchange, exchange.Request.Frozen)
		return nil
	case limit == 0 && !isHeavy(exchange):
		skip(exchange, "unknown_model")
		return nil
	case exchange.Class.Kind == client.Compaction && fitsWhole(exchange):
		// The client's own summary is to be made of what was said.
		exchange.Projection = nil
		standing := exchange.Standing()
		standing.Events, standing.Modules = exchange.Report.Events, exchange.Report.Modules
		exchange.Report = standing
		skip(exchange, "client_compaction")
		return nil
	}
	size := exchange.Size(exchange.Projection)
	why := occasionOf(exchange, size)
	switch {
	case why == noOccasion:
		return nil
	case config.DeepestLevel == 0:
		skip(exchange, "deepest_level")
		return nil
	case !config.ArchiveToBlob:
		skip(exchange, "archive_off")
		return nil
	}
	if reason := held(exchange, size, why); reason != "" {
		reportHeld(exchange, size, why, reason)
		return nil
	}
	return m.try(ctx, exchange, size, why)
}

// try makes an epoch of an exchange of size tokens if one is worth making.
func (m *Module) try(ctx context.Context, exchange *pipeline.Exchange, size int, why occasion) error {
	epoch := ahead(exchange, size)
	if epoch == nil {
		var err error
		if epoch, err = m.plan(ctx, exchange, size); err != nil {
			return giveUp(ctx, exchange, size, why, err)
		}
	}
	epoch.projection.Reason = why.reason()
	epoch.prediction = predict(exchange, epoch)
	if why == atTarget && !epoch.prediction.worth || why == brokeEven && !hasBrokenEven(exchange, epoch) {
		putOff(exchange, costGate, size)
		exchange.Report.Events = append(exchange.Report.Events, pipeline.Event{
			Module: Name, Type: "skipped", Reason: costGate, Counts: epoch.prediction.counts(),
		})
		return nil
	}
	// The originals are durable before the shortened prompt may leave.
	err := exchange.Commit(ctx, epoch.projection)
	if errors.Is(err, session.ErrWarm) {
		skip(exchange, "warm_elsewhere")
		return nil
	}
	if err != nil {
		brokeOff(ctx, exchange, notArchived, size, err)
		return fmt.Errorf("archive originals: %w", err)
	}
	exchange.Projection = &epoch.projection
	epoch.report(exchange)
	cameTrue(exchange, epoch)
	return nil
}

// giveUp ends an attempt that led to no plan.
func giveUp(ctx context.Context, exchange *pipeline.Exchange, size int, why occasion, err error) error {
	reason := notPlanned
	switch {
	case errors.Is(err, errNothingToFree):
		reason = nothingToFree
	case errors.Is(err, errWorse):
		reason = notSmaller
		exchange.Report.Events = append(exchange.Report.Events, pipeline.Event{Module: Name, Type: "rejected", Reason: err.Error()})
	default:
		brokeOff(ctx, exchange, reason, size, err)
		return fmt.Errorf("plan epoch: %w", err)
	}
	switch why {
	case idle, brokeEven: // there was no need of it
		putOff(exchange, reason, size)
		return nil
	case asked:
		skip(exchange, reason)
		putOff(exchange, reason, size)
		return nil
	default:
	}
	unreachable(exchange, size)
	cameToNothing(exchange, reason, size)
	return nil
}

// Interface guard.
var _ pipeline.Module = (*Module)(nil)
