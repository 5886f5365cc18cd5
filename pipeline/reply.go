package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Reply is an answer that a module gives to an exchange in the provider's place.
type Reply struct {
	ID   string    // the same for the same exchange
	Text string    // what the assistant says
	At   time.Time // when what it is made of became ready; zero if unknown
}

// Replier is a module that may answer an exchange in the provider's place.
type Replier interface {
	Module

	// Answer returns a draft with the Reply that the module gives, or without one if the
	// provider is to give it. Of the draft nothing else counts but the report's events.
	Answer(ctx context.Context, exchange *View) (*Draft, error)
}

// AnsweredCompaction is the value of Report.Answered where a client's request for a summary
// was answered from Palimpsest's compaction.
const AnsweredCompaction = "compaction"

// answer asks the config's modules in order whether one of them answers the exchange, and
// reports whether one did. One that fails has its draft dropped, and the provider is asked.
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

// settleReply has an exchange be answered: nothing of its prompt goes out, so nothing of it
// counts as shortened.
func (e *Exchange) settleReply(module string, reply *Reply) {
	events := e.Report.Events
	e.Reply, e.Projection = reply, nil
	e.Report = e.Standing()
	e.Report.After = e.Report.Before
	e.Report.Answered, e.Report.Events = AnsweredCompaction, events
	e.Report.Modules = []ModuleReport{{Name: module, Outcome: Applied}}
}
