package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Reply is a module's answer to an exchange in the provider's place.
type Reply struct {
	ID   string    // equal for equal exchanges
	Text string    // what the assistant says
	At   time.Time // when its source became ready; zero if unknown
}

// Replier is a module that may answer an exchange in the provider's place.
type Replier interface {
	Module

	// Answer returns a draft with the module's Reply, or without one if the provider should answer. The chain
	// uses only the Reply and the report's events of the draft.
	Answer(ctx context.Context, exchange *View) (*Draft, error)
}

// AnsweredCompaction is the value of Report.Answered if a client's request for a summary was answered from
// Palimpsest's compaction.
const AnsweredCompaction = "compaction"

// answer asks the config's modules in order for an answer to the exchange, and reports whether one gave it.
// If a module fails, its draft is dropped and the provider is asked.
func (c *Chain) answer(ctx context.Context, exchange *Exchange, view *View) bool {
	for _, name := range exchange.Config.Modules {
		at := slices.IndexFunc(c.modules, func(module Module) bool { return module.Name() == name })
		if at < 0 {
			continue
		}
		replier, answers := c.modules[at].(Replier)
		if !answers {
			continue
		}
		draft, err := c.run(ctx, exchange, view, replier, replier.Answer)
		if err != nil {
			exchange.Report.Events = append(exchange.Report.Events, ReportEntry{
				Module: name, Type: "failed", Reason: fmt.Sprintf("answer in the provider's place: %v", err), FellBackTo: "provider",
			})
			continue
		}
		if draft == nil {
			continue
		}
		exchange.Report.Events = draft.Report.Events
		if draft.Reply != nil {
			exchange.settleReply(name, draft.Reply)
			return true
		}
	}
	return false
}

// settleReply makes the exchange answered by a module. Its report counts no savings, because no prompt is
// sent.
func (e *Exchange) settleReply(module string, reply *Reply) {
	events := e.Report.Events
	e.Reply, e.Projection = reply, nil
	e.Report = e.Standing()
	e.Report.After = e.Report.Before
	e.Report.Answered, e.Report.Events = AnsweredCompaction, events
	e.Report.Modules = []ModuleReport{{Name: module, Outcome: Applied}}
}
