package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
)

// DefaultDeadline limits one module's work on one exchange, including its archive write.
const DefaultDeadline = 5 * time.Second

// The ways in which a module ends.
const (
	Applied = "applied" // it changed the prompt
	Noop    = "noop"    // it left the prompt as it was
	Failed  = "failed"  // it failed, and its draft was dropped
	Skipped = "skipped" // the config names it, but this chain does not contain it
)

// ErrDeadline is the error of a module that exceeded its deadline.
var ErrDeadline = errors.New("module overran its deadline")

// Chain runs the modules of an exchange's config in the config's order.
type Chain struct {
	modules  []Module
	deadline time.Duration
}

// NewChain returns a Chain that looks up a config's modules among modules and gives each DefaultDeadline.
func NewChain(modules ...Module) *Chain {
	return &Chain{modules: modules, deadline: DefaultDeadline}
}

// WithDeadline returns a Chain of the same modules with a different deadline for each.
func (c *Chain) WithDeadline(deadline time.Duration) *Chain {
	return &Chain{modules: c.modules, deadline: deadline}
}

// Process runs an exchange's modules on it. If one of them answers it in the provider's place, Process ends
// there. Process never fails: if a module returns an error, panics or exceeds its deadline, its draft is
// dropped, and the exchange stays the same except for the report of the failure.
func (c *Chain) Process(ctx context.Context, exchange *Exchange) {
	exchange.Report = exchange.Standing()
	view := new(View) // reused for each module, because it is large
	if c.answer(ctx, exchange, view) {
		return
	}
	for _, name := range exchange.Config.Modules {
		at := slices.IndexFunc(c.modules, func(module Module) bool { return module.Name() == name })
		if at < 0 {
			exchange.Report.Modules = append(exchange.Report.Modules, ModuleReport{Name: name, Outcome: Skipped})
			continue
		}
		c.step(ctx, c.modules[at], exchange, view)
	}
}

// step runs one module and applies its draft, unless it fails.
func (c *Chain) step(ctx context.Context, module Module, exchange *Exchange, view *View) {
	ctx, span := spans.Start(ctx, "module", module.Name())
	defer span.End()
	outcome := Noop
	draft, err := c.run(ctx, exchange, view, module, module.Process)
	switch {
	case err != nil:
		outcome = Failed
		span.Fail(spans.KindOf(err))
		exchange.Report.Events = append(exchange.Report.Events, ReportEntry{
			Module: module.Name(), Type: "failed", Reason: err.Error(), FellBackTo: fallback(exchange.Lane.Projection),
		})
	case draft != nil:
		if draft.Lane.Projection != exchange.Lane.Projection || len(draft.Lane.Inserts) > len(exchange.Lane.Inserts) {
			outcome = Applied
		}
		exchange.Take(draft)
	}
	span.String(spans.Outcome, outcome)
	exchange.Report.Modules = append(exchange.Report.Modules, ModuleReport{Name: module.Name(), Outcome: outcome})
}

// run makes a module draft an exchange within its deadline, and turns a panic into an error. The module runs
// in the caller's goroutine, so that it has ended when run returns. If it ignores its deadline, run notices
// only when it returns. view is overwritten with the module's view.
func (c *Chain) run(ctx context.Context, exchange *Exchange, view *View, module Module, do func(context.Context, *View) (*Draft, error)) (draft *Draft, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.deadline, ErrDeadline)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			draft, err = nil, fmt.Errorf("module %s panicked: %v", module.Name(), value)
		}
	}()
	*view = exchange.View // a copy, because the module may change it
	if draft, err = do(ctx, view); err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrDeadline) {
			return nil, fmt.Errorf("%w: %w", cause, err)
		}
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return draft, nil
}

// fallback names the prompt that goes out after a module's failure.
func fallback(projection *session.Projection) string {
	if projection == nil {
		return "original"
	}
	return fmt.Sprintf("projection %d", projection.Number)
}

// Module is one step of the pipeline.
type Module interface {
	// Name is the module's name in configs, headers and events.
	Name() string

	// Process returns the module's changes to the exchange; nil for no change. If it returns an error, panics
	// or exceeds its deadline, its draft is dropped and the chain continues. It must not change or keep the
	// view.
	Process(ctx context.Context, exchange *View) (*Draft, error)
}
