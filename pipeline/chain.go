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

// DefaultDeadline bounds one module's work on one exchange, its archive write
// included.
const DefaultDeadline = 5 * time.Second

// The ways in which a module ends.
const (
	Applied = "applied" // it changed the prompt
	Noop    = "noop"    // it left the prompt as it was
	Failed  = "failed"  // it failed, and its draft was dropped
	Skipped = "skipped" // the config names it, but this chain does not have it
)

// ErrDeadline says that a module took longer than it may.
var ErrDeadline = errors.New("module overran its deadline")

// Chain runs the modules of an exchange's config in the config's order.
type Chain struct {
	modules  []Module
	deadline time.Duration
}

// NewChain returns a Chain that finds the modules a config names among modules
// and gives each of them DefaultDeadline.
func NewChain(modules ...Module) *Chain {
	return &Chain{modules: modules, deadline: DefaultDeadline}
}

// WithDeadline returns a Chain of the same modules with another deadline for each.
func (c *Chain) WithDeadline(deadline time.Duration) *Chain {
	return &Chain{modules: c.modules, deadline: deadline}
}

// Process takes an exchange through its modules. If one of them answers it in the
// provider's place, none of them runs. It never fails: the draft of a module that
// returns an error, panics or overruns its deadline is dropped, which leaves the
// exchange as the module found it but for the report of the failure.
func (c *Chain) Process(ctx context.Context, exchange *Exchange) {
	exchange.Report = exchange.Standing()
	view := new(View) // each module's in turn: it is large
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

// step runs one module and takes over its draft, unless it fails.
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
			Module: module.Name(), Type: "failed", Reason: err.Error(), FellBackTo: standing(exchange.Projection),
		})
	case draft != nil:
		if draft.Projection != exchange.Projection || len(draft.Inserts) > len(exchange.Inserts) {
			outcome = Applied
		}
		exchange.Take(draft)
	}
	span.String(spans.Outcome, outcome)
	exchange.Report.Modules = append(exchange.Report.Modules, ModuleReport{Name: module.Name(), Outcome: outcome})
}

// run has a module make a draft of an exchange within its deadline, and turns a panic into
// an error. The module runs in the caller's goroutine, so that nothing of it is left when run
// returns; a deadline that it does not watch is noticed once it returns. view becomes what it sees.
func (c *Chain) run(ctx context.Context, exchange *Exchange, view *View, module Module, do func(context.Context, *View) (*Draft, error)) (draft *Draft, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.deadline, ErrDeadline)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			draft, err = nil, fmt.Errorf("module %s panicked: %v", module.Name(), value)
		}
	}()
	*view = exchange.View // whatever the module does to it
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

// standing names what goes out where a module is undone.
func standing(projection *session.Projection) string {
	if projection == nil {
		return "original"
	}
	return fmt.Sprintf("projection %d", projection.Number)
}
