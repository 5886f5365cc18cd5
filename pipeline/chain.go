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
	Failed  = "failed"  // it failed and was undone
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
// provider's place, none of them runs. It never fails: a module that
// returns an error, panics or overruns its deadline is undone, which leaves the
// exchange as the module found it but for the report of the failure.
func (c *Chain) Process(ctx context.Context, exchange *Exchange) {
	exchange.Report = exchange.Standing()
	if c.answer(ctx, exchange) {
		return
	}
	for _, name := range exchange.Config.Modules {
		at := slices.IndexFunc(c.modules, func(module Module) bool { return module.Name() == name })
		if at < 0 {
			exchange.Report.Modules = append(exchange.Report.Modules, ModuleReport{Name: name, Outcome: Skipped})
			continue
		}
		c.step(ctx, c.modules[at], exchange)
	}
}

// step runs one module and undoes it if it fails.
func (c *Chain) step(ctx context.Context, module Module, exchange *Exchange) {
	ctx, span := spans.Start(ctx, "module", module.Name())
	defer span.End()
	before := *exchange
	before.Report = before.Report.clone()
	outcome := Noop
	if err := c.run(ctx, module, exchange); err != nil {
		*exchange = before
		outcome = Failed
		span.Fail(spans.KindOf(err))
		exchange.Report.Events = append(exchange.Report.Events, Event{
			Module: module.Name(), Type: "failed", Reason: err.Error(), FellBackTo: standing(before.Projection),
		})
	} else if exchange.Projection != before.Projection || len(exchange.Inserts) > len(before.Inserts) {
		outcome = Applied
	}
	span.String(spans.Outcome, outcome)
	exchange.Report.Modules = append(exchange.Report.Modules, ModuleReport{Name: module.Name(), Outcome: outcome})
}

// run calls a module with its deadline and turns a panic into an error. The
// module runs in the caller's goroutine, so that nothing of it is left when run
// returns; a deadline that it does not watch is noticed once it returns.
func (c *Chain) run(ctx context.Context, module Module, exchange *Exchange) error {
	return c.guard(ctx, module, func(ctx context.Context) error { return module.Process(ctx, exchange) })
}

// guard has a module do something within its deadline and turns a panic into an error.
func (c *Chain) guard(ctx context.Context, module Module, do func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.deadline, ErrDeadline)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("module %s panicked: %v", module.Name(), value)
		}
	}()
	if err := do(ctx); err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrDeadline) {
			return fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	return context.Cause(ctx)
}

// standing names what goes out where a module is undone.
func standing(projection *session.Projection) string {
	if projection == nil {
		return "original"
	}
	return fmt.Sprintf("projection %d", projection.Number)
}
