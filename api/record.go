package api

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"palimpsest/api/recorder"
	"palimpsest/api/spool"
	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
)

// recordRequest hands the messages that are new to the archive to the recorder, while the answer is still on
// its way. It returns a channel that is closed after the attempt to store them.
func (s *Server) recordRequest(ctx context.Context, event *RequestLog, written *prompt.Prompt, body *requestBody) <-chan struct{} {
	over := make(chan struct{})
	if written.Lane == nil {
		close(over)
		return over
	}
	update := written.Update(event.times.At)
	release, recorded := keepEntries(&update, body), s.Bytes.recording(len(update.Messages.Entries), update.Bytes())
	update.Client = event.Client
	lane, to := written.Lane, update.Messages.Position
	from := to - len(update.Messages.Entries)
	event.record.request = recorder.NewRequest(&update)
	_, span := spans.Start(context.WithoutCancel(ctx), "record request")
	s.Recorder.Put(recorder.Job{Update: &update, Request: event.record.request, Span: span, Ended: func(stored bool) {
		defer close(over)
		release()
		recorded()
		if stored {
			lane.Arrived(from, to)
		} else {
			lane.Lost()
		}
	}})
	return over
}

// keepEntries keeps the messages of a request until release is called: if they are most of the body they hold
// its memory, otherwise they are copied.
func keepEntries(update *session.Update, body *requestBody) (release func()) {
	if 2*update.Bytes() >= cap(body.bytes) {
		body.hold()
		return body.release
	}
	for i := range update.Messages.Entries {
		update.Messages.Entries[i].Raw = bytes.Clone(update.Messages.Entries[i].Raw)
	}
	return func() {}
}

// recordAnswer learns from an answer and prepares its record.
func (s *Server) recordAnswer(ctx context.Context, event *RequestLog, codec wire.Codec, sent prompt.Sent, answer wire.Answer) {
	if answer.ErrorType != "" {
		event.outcome.failed(answer.ErrorType)
		if event.outcome.said == nil && !event.record.noStore {
			event.outcome.quoted(keptOf(answer.Error, event.record.redactor))
		}
	}
	taught, overflows := sent.Teaches(answer)
	if overflows && event.outcome.Status == http.StatusOK && !event.record.noStore {
		s.learn(ctx, event, taught)
		s.Prompts.Overflowed(sent)
	}
	switch {
	case event.outcome.Status != http.StatusOK, isLost(event, answer):
	case overflows && answer.Error != nil && answer.Said == 0:
		event.held.owes.Store(false)
	default:
		s.settle(event, sent, &answer)
		noteCompactions(event, sent, answer.Compactions)
		event.held.owes.Store(false)
	}
	event.money.used(answer.Billed().Bounded())
	event.record.position = sent.Position
	if sent.Lane == nil {
		return
	}
	update := sent.Lane.Update(sent.Scope, event.Model, event.times.At)
	update.Client, update.Messages.Position, update.Messages.Head = event.Client, sent.Position, sent.Head
	update.Increment.Exchanges, update.Increment.CostMicroUSD, update.Increment.NetMicroUSD, update.Increment.Reach = 1, event.money.CostMicroUSD, event.money.NetMicroUSD, event.money.Reach
	update.Increment.TokensBefore, update.Increment.TokensAfter = event.Report.Before, event.Report.After
	update.Messages.Answer, _ = event.record.redactor.JSON(answer.Spoken(codec)) // counted when the client sends it again
	event.record.update = &update
}

// settle counts the cost and the savings of an answer from the provider's report, and estimates any part that
// is missing from it.
func (s *Server) settle(event *RequestLog, sent prompt.Sent, answer *wire.Answer) {
	sent.Broken = event.outcome.Aborted != "" || answer.ErrorType != "" || answer.Failure != ""
	if isOwed(event, *answer) {
		answer.Usage = sent.Metered(*answer)
		if answer.Said == 0 && event.Stream {
			answer.Usage.Output = max(answer.Usage.Output, min(event.thought(s.Now()), event.held.most.Answers))
		}
		reason := "the provider did not report all that it charges for"
		if answer.Failure != "" {
			reason = "the answer could not be read"
		}
		event.estimated(reason)
	}
	answer.Usage = answer.Usage.Bounded()
	*answer = sent.Searched(*answer)
	money := s.Prompts.Answered(sent, *answer)
	noteUnlisted(event, *answer, s.Prompts.UnlistedTools(&sent, *answer))
	event.money.settled(money, s.Prompts.Served(&sent, *answer))
	s.Summaries.Heard(sent, answer.Usage)
}

// noteUnlisted reports tools that the provider ran itself, without a price in the catalog, and their assumed
// cost.
func noteUnlisted(event *RequestLog, answer wire.Answer, unlisted map[string]int64) {
	for _, tool := range slices.Sorted(maps.Keys(unlisted)) {
		event.Report.Events = append(event.Report.Events, pipeline.ReportEntry{
			Module: "usage", Type: "unlisted_tool", Reason: "the catalog has no price for " + tool,
			Counts: map[string]int{"uses": answer.Tools[tool], "micro_usd": int(unlisted[tool])},
		})
	}
}

// noteCompactions reports that the provider has compacted the history on its own: the size of the history,
// and the extra usage beyond the answer's own.
func noteCompactions(event *RequestLog, sent prompt.Sent, used []wire.Usage) {
	if len(used) == 0 {
		return
	}
	counts := map[string]int{"compactions": len(used), "messages": sent.Position, "input_tokens": 0, "output_tokens": 0}
	for _, one := range used {
		counts["input_tokens"] += one.Prompt()
		counts["output_tokens"] += one.Output
	}
	event.Report.Events = append(event.Report.Events, pipeline.ReportEntry{
		Module: pipeline.ProviderModule, Type: pipeline.CompactedType, Reason: event.Provider, Counts: counts,
	})
}

// isLost reports whether an answer in one piece is completely unknown, because it ended early or reports no
// usage.
func isLost(event *RequestLog, answer wire.Answer) bool {
	return !event.Stream && answer.Usage.Prompt() == 0 && answer.Said == 0 && answer.ErrorType == "" && len(answer.Messages) == 0
}

// isOwed reports whether a provider charges for more of an answer than it has reported: the client left, the
// connection broke during the answer, or its stream ended without usage. It includes answers that could not
// be read whole, because their reported usage is unknown. A stream that opens with an error is a refusal,
// which is free. An answer that pauses behind the provider's own compaction reports only that.
func isOwed(event *RequestLog, answer wire.Answer) bool {
	billed := answer.Billed()
	switch {
	case answer.ErrorType != "" && answer.Said == 0:
		return false
	case answer.Failure != "", answer.Usage.Prompt() == 0 && (!answer.Complete || billed.Prompt() == 0):
		return true
	}
	return (event.outcome.Aborted != "" || answer.ErrorType != "") && !answer.Complete
}

// begin starts the event of a request.
func (r *Records) begin(request *http.Request, endpoint string) *RequestLog {
	return &RequestLog{
		ID: uuid.Must(uuid.NewV7()), times: times{At: r.Now()}, Method: request.Method, Endpoint: endpoint,
		Client: client.Name(request.Header), Version: client.Version(request.Header),
	}
}

// end closes the event of a request and writes it to the recorder, the log and the metrics, in this order, so
// that it is recorded even if the later ones fail.
func (r *Records) end(ctx context.Context, event *RequestLog) {
	defer event.traced.end(event)
	if event.from.leave != nil {
		event.from.leave()
	}
	if event.from.cancel != nil {
		defer event.from.cancel(nil)
	}
	event.times.ended(r.Now())
	event.charge(r.Now())
	event.money.unanswered()
	// Settle before the exchange is recorded, so that spend read from the record doesn't include it already.
	event.held.ticket.Settle(ctx, event.money.Usage.Prompt()+event.money.Usage.Output, event.money.CostMicroUSD)
	r.record(ctx, event)
	r.aside(ctx, event, func() {
		event.log(ctx, r.Log)
		r.Metrics.observe(event)
	})
}

// record hands an ended exchange to the recorder.
func (r *Records) record(ctx context.Context, event *RequestLog) {
	sent := againIn(ctx)
	// A client that is asked for its whole conversation sends it at once, in the request that counts.
	if event.from.Workspace.IsZero() || errors.Is(event.outcome.Err, prompt.ErrResumes) {
		if sent != nil {
			sent.ended(uuid.Nil)(false)
		}
		return
	}
	r.keep(ctx, event)
	exchange := event.recorded()
	_, span := spans.Start(ctx, "record exchange")
	noted, ended := event.held.noted, sent.ended(event.ID)
	r.Recorder.Put(recorder.Job{
		Update: event.record.update, Request: event.record.request, Exchange: exchange, Said: event.outcome.said, Kept: event.record.kept, Span: span,
		Ended: func(stored bool) {
			if stored {
				noted.Withdraw()
			} else {
				noted.Failed() // and is recorded in its place
			}
			if ended != nil {
				ended(stored)
			}
		},
	})
}

// keep writes the record of an exchange to the local disk, before its client has the complete answer.
func (r *Records) keep(ctx context.Context, event *RequestLog) {
	if !r.Recorder.Keeps() || event.record.isKept || event.from.Workspace.IsZero() {
		return
	}
	event.record.isKept = true
	exchange := event.recorded()
	event.record.report = exchange.Prompt.Report // complete from here on
	event.record.kept = r.Recorder.Keep(ctx, recorder.Job{Update: event.record.update, Request: event.record.request, Exchange: exchange, Said: event.outcome.said})
	if event.record.kept != (spool.Record{}) {
		event.isOver()
	}
}
