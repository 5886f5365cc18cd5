package prompt

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
)

// injectTimeout bounds how long the store may take to keep inserts. After it, the prompt goes out without
// them, so that it isn't late.
const injectTimeout = 5 * time.Second

// keepInserts stores all new inserts of the prompt in one transaction before the body goes out. If that
// fails, or if another process was first to compact the lane, it removes them from the prompt.
func (w *Writer) keepInserts(ctx context.Context, prompt *Prompt) {
	exchange, lane := prompt.Exchange, prompt.Lane
	fresh := exchange.Fresh()
	if len(fresh) == 0 {
		return
	}
	if prompt.earlier.isBehind { // the prompt starts again, or its lane is outdated
		exchange.Withdraw(session.ErrOvertaken)
		return
	}
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
	prompt.fresh, prompt.Archived = durable, prompt.Archived+update.Bytes()
	lane.Keep(durable)
	lane.Arrived(0, len(exchange.Conversation.Digests))
	w.Resolver.Committed(lane)
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
	at := slices.IndexFunc(exchange.Lane.Inserts, func(insert session.Insert) bool { return insert.Number >= from })
	if at >= 0 {
		exchange.Lane.Inserts = exchange.Lane.Inserts[:at:at]
	}
	exchange.Report.After = exchange.Size(exchange.Lane.Projection)
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

// Update returns the request's addition to its session: the messages not yet on their way to the
// archive. Their bytes share the body's memory. The prompt must have a lane, and the caller must report to it
// whether they have Arrived or are Lost.
func (p *Prompt) Update(now time.Time) session.Update {
	return p.update(now, p.Lane.HandOver(len(p.Exchange.Conversation.Digests)))
}

// Announce begins to notify other processes of the position and time of a client's request.
func (w *Writer) Announce(prompt *Prompt, client string, now time.Time) session.Announced {
	if prompt.Lane == nil {
		return session.Announced{}
	}
	exchange, lane, position := prompt.Exchange, prompt.Lane, len(prompt.Exchange.Conversation.Digests)
	update := lane.Place(exchange.Scope, now)
	update.Messages.Position, update.Messages.Head = position, exchange.Conversation.Chain[position]
	if lane.Kind != session.Side && lane.Archived() == 0 { // a new session is listed from now on
		update.Title, update.Client, update.Model = title(&exchange.Conversation), client, exchange.Request.Model
	}
	return w.Resolver.Announce(update)
}

// update returns the request's addition to its session, with its messages from index from on.
func (p *Prompt) update(now time.Time, from int) session.Update {
	exchange, lane := p.Exchange, p.Lane
	position := len(exchange.Conversation.Digests)
	update := lane.Update(exchange.Scope, exchange.Request.Model, now)
	update.Messages.Position, update.Messages.Head, update.Increment.Continued = position, exchange.Conversation.Chain[position], session.HasHistory(exchange.Conversation.Digests) || exchange.Request.Previous != ""
	if lane.Kind != session.Side && !isTitled(exchange.Conversation.Digests[:min(from, position)]) {
		update.Title = title(&exchange.Conversation)
	}
	if from < position {
		update.Messages.Links = exchange.Conversation.Chain[from : position+1]
	}
	for i := from; i < position; i++ {
		digest := exchange.Conversation.Digests[i]
		raw, found := exchange.Conversation.Kept(i)
		update.Increment.Redacted = session.Sum(update.Increment.Redacted, found)
		update.Messages.Entries = append(update.Messages.Entries, archive.Entry{
			Index: i, Hash: exchange.Conversation.KeptHash(i), Role: digest.Role, Flags: digest.Flags, Tokens: digest.Tokens, Raw: raw, Size: len(raw),
		})
	}
	p.Redacted = session.Sum(p.Redacted, update.Increment.Redacted)
	return update
}
