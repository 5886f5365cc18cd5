package prompt

import (
	"fmt"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// guarded runs find, which finds a prompt's lane and decides its projection. After a panic outside the
// modules, the prompt goes out with the projection from before, and its session is not recorded.
func (p *Prompt) guarded(find func()) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		exchange := p.Exchange
		fell := "original"
		exchange.Projection = p.earlier.standing
		if p.earlier.standing != nil {
			fell = fmt.Sprintf("projection %d", p.earlier.standing.Number)
		}
		exchange.Inserts = slices.DeleteFunc(slices.Clone(exchange.Inserts), func(insert session.Insert) bool { return insert.Number == 0 })
		p.Lane, p.Trial, p.fresh = nil, nil, nil
		exchange.Report = exchange.Standing()
		exchange.Report.Events = []pipeline.ReportEntry{{
			Module: "prompt", Type: "failed", Reason: fmt.Sprintf("panicked: %v", value), FellBackTo: fell,
		}}
	}()
	find()
}
