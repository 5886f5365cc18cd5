package prompt

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// injectTimeout bounds how long the store may take to keep inserts. After it, the prompt goes out without
// them, so that it isn't late.
const injectTimeout = 5 * time.Second

// keepInserts stores all new inserts of the prompt in one transaction before the body goes out. If that
// fails, it removes them from the prompt.
func (w *Writer) keepInserts(ctx context.Context, prompt *Prompt) {
	exchange, lane := prompt.Exchange, prompt.Lane
	fresh := exchange.Fresh()
	if len(fresh) == 0 {
		return
	}
	// Inserts that make the prompt longer come last, since only they may be withdrawn.
	slices.SortStableFunc(fresh, func(a, b session.Insert) int { return cmp.Compare(order(&a), order(&b)) })
	durable := slices.Clone(fresh)
	for i := range durable {
		durable[i].Number = lane.NextInsert() + i
	}
	ctx, cancel := context.WithTimeout(ctx, injectTimeout)
	defer cancel()
	now := w.Now()
	update := prompt.update(now, lane.Archived())
	err := w.Store.Inject(ctx, update, durable)
	prompt.Archiving += w.Now().Sub(now)
	if err != nil {
		if errors.Is(err, session.ErrOvertaken) {
			w.Resolver.Forget(lane.ID)
		}
		exchange.Withdraw(err)
		return
	}
	copy(fresh, durable)
	prompt.fresh, prompt.Archived = pipeline.WithoutPointers(durable), prompt.Archived+update.Bytes()
	lane.Keep(durable)
	lane.Arrived(0, len(exchange.Digests))
	w.Resolver.Committed(lane)
}

// order returns the position of a new insert among those of its request: pointers first.
func order(insert *session.Insert) int {
	if insert.IsPointer() {
		return 0
	}
	return 1
}

// withdraw removes a refused prompt's new inserts from the prompt and its lane. It returns false if there are
// none or the store fails, because the next prompt would then include the stored inserts.
func (w *Writer) withdraw(ctx context.Context, prompt *Prompt, fresh []session.Insert) bool {
	if len(fresh) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, injectTimeout)
	defer cancel()
	exchange, from := prompt.Exchange, fresh[0].Number
	if err := w.Store.Withdraw(ctx, exchange.Scope.Workspace, prompt.Lane.ID, from); err != nil {
		return false
	}
	prompt.Lane.Drop(from)
	w.Resolver.Committed(prompt.Lane)
	at := slices.IndexFunc(exchange.Inserts, func(insert session.Insert) bool { return insert.Number >= from })
	if at >= 0 {
		exchange.Inserts = exchange.Inserts[:at:at]
	}
	exchange.Report.After = exchange.Size(exchange.Projection)
	counts := map[string]int{}
	for i := range fresh {
		counts[fresh[i].Module] += fresh[i].Count()
	}
	for _, module := range slices.Sorted(maps.Keys(counts)) {
		exchange.Report.Events = append(exchange.Report.Events, pipeline.ReportEntry{
			Module: module, Type: "withdrawn", Reason: "overflow", Counts: map[string]int{"items": counts[module]},
		})
	}
	return true
}

// injectedBy adds a refused prompt's new inserts to a report, because the prompt that replaces it holds them
// as well.
func injectedBy(report *pipeline.Report, refused pipeline.Report) {
	report.Injected = maps.Clone(refused.Injected)
	for i, module := range report.Modules {
		if report.Injected[module.Name] > 0 && module.Outcome == pipeline.Noop {
			report.Modules[i].Outcome = pipeline.Applied
		}
	}
}
