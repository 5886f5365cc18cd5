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
const RenderVersion = 2

// Counter counts the o200k tokens of a message.
type Counter interface {
	Message(message conversation.Message) int
}

// Module is the module ipc. It has no state of its own and is safe for
// concurrent use.
type Module struct{ counter Counter }

// New returns the module; counter counts as the exchange's digests were counted.
func New(counter Counter) *Module { return &Module{counter: counter} }

// Name implements pipeline.Module.
func (*Module) Name() string { return Name }

// Process makes a new projection if the prompt exceeds its target and enough can
// be freed; otherwise the exchange keeps the projection it has. An error leaves
// the exchange as it was.
func (m *Module) Process(ctx context.Context, exchange *pipeline.Exchange) error {
	config, limit := exchange.Config.IPC, exchange.Limit
	switch {
	case exchange.Request.Frozen != "":
		exchange.Report.Compression = pipeline.Bypassed
		skip(exchange, exchange.Request.Frozen)
		return nil
	case limit == 0:
		skip(exchange, "unknown_model")
		return nil
	case exchange.Class.Kind == client.Compaction && exchange.Original() <= limit:
		// The client's own summary is to be made of what was said.
		exchange.Projection = nil
		exchange.Report = exchange.Standing()
		skip(exchange, "client_compaction")
		return nil
	}
	size := exchange.Size(exchange.Projection)
	if float64(size) <= config.TargetUtilization*float64(limit) {
		return nil
	}
	switch {
	case config.DeepestLevel == 0:
		skip(exchange, "deepest_level")
		return nil
	case !config.ArchiveToBlob:
		skip(exchange, "archive_off")
		return nil
	}
	epoch, err := m.plan(ctx, exchange, size)
	if errors.Is(err, errWorse) {
		exchange.Report.Events = append(exchange.Report.Events, pipeline.Event{Module: Name, Type: "rejected", Reason: err.Error()})
	}
	if errors.Is(err, errNothingToFree) || errors.Is(err, errWorse) {
		unreachable(exchange, size)
		return nil
	}
	if err != nil {
		return fmt.Errorf("plan epoch: %w", err)
	}
	// The originals are durable before the shortened prompt may leave.
	if err := exchange.Commit(ctx, epoch.projection); err != nil {
		return fmt.Errorf("archive originals: %w", err)
	}
	exchange.Projection = &epoch.projection
	epoch.report(exchange)
	return nil
}

// epoch is a planned step to a new projection.
type epoch struct {
	projection session.Projection
	levels     [4]int // turns at each level
	compacted  int    // messages that are no longer sent as the client sent them
	original   int    // o200k tokens of the messages the projection covers
	rendered   int    // and of its parts
	before     int    // the model's tokens of the prompt as the client sent it
	truncated  int    // tool results of the tail that were cut to fit the window
	reached    bool   // the prompt is under its target
}

// report tells of an epoch that has happened.
func (e *epoch) report(exchange *pipeline.Exchange) {
	report := &exchange.Report
	report.Compression = pipeline.Epoch
	report.Before, report.After, report.Limit = e.before, e.projection.After, exchange.Limit
	report.Levels = e.levels
	report.Archived = e.compacted
	counts := map[string]int{
		"before": e.projection.Before, "after": e.projection.After, "compacted_count": e.compacted,
		"original_token_count": e.original, "summary_token_count": e.rendered,
		"archive_from": 0, "archive_to": e.projection.Covers,
		"l0": e.levels[0], "l1": e.levels[1], "l2": e.levels[2], "l3": e.levels[3],
	}
	report.Events = append(report.Events,
		pipeline.Event{Module: Name, Type: "started", Reason: e.projection.Reason, Counts: map[string]int{"before": e.projection.Before}},
		pipeline.Event{Module: Name, Type: "completed", Reason: e.projection.Reason, Counts: counts},
	)
	if e.truncated > 0 {
		report.Events = append(report.Events, pipeline.Event{Module: Name, Type: "truncated", Counts: map[string]int{"dropped": e.truncated}})
	}
	if !e.reached {
		unreachable(exchange, e.projection.After)
	}
}

// skip reports why there is no epoch.
func skip(exchange *pipeline.Exchange, reason string) {
	exchange.Report.Events = append(exchange.Report.Events, pipeline.Event{Module: Name, Type: "skipped", Reason: reason})
}

// unreachable reports that the prompt goes out above its target.
func unreachable(exchange *pipeline.Exchange, size int) {
	exchange.Report.Compression = pipeline.Unreachable
	exchange.Report.Events = append(exchange.Report.Events, pipeline.Event{
		Module: Name, Type: "target_unreachable", Counts: map[string]int{"size": size, "limit": exchange.Limit},
	})
}

// Interface guard.
var _ pipeline.Module = (*Module)(nil)
