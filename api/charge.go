package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"palimpsest/api/spool"
	"palimpsest/pipeline"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
)

// spoken is how many tokens a second a model writes, roughly, that thinks and says nothing.
const spoken = 100

// charge counts a request that has ended, and whose provider did not come to say what it
// charges, at an estimate; others it leaves as they are. A provider ends a stream when its
// connection ends: what it was sent counts, and what it may have thought by then. What
// it writes in one piece it may write to its end for nobody: all that was held counts.
func (e *RequestLog) charge(now time.Time) {
	if !e.held.owes.Swap(false) || e.held.most == (prompt.Most{}) {
		return
	}
	usage, cost := wire.Usage{Input: e.held.most.Prompt, Output: e.held.most.Answers}, e.held.most.MicroUSD
	if e.Stream {
		usage.Output = min(e.held.most.Answers, e.thought(now))
		cost = e.held.most.PromptMicroUSD
		if e.held.most.Answers > 0 {
			cost += (e.held.most.MicroUSD - e.held.most.PromptMicroUSD) * int64(usage.Output) / int64(e.held.most.Answers)
		}
	}
	e.money.estimated(usage, cost)
	e.estimated("the provider did not say what it charges")
}

// thought returns how many tokens a model may have written since it was sent the request,
// of which nothing came.
func (e *RequestLog) thought(now time.Time) int {
	return int((now.Sub(e.times.At)-e.times.Overhead)/time.Second) * spoken
}

// estimated notes that what the request used is an estimate.
func (e *RequestLog) estimated(reason string) {
	e.Report.Events = append(e.Report.Events, isEstimated(reason))
}

func isEstimated(reason string) pipeline.ReportEntry {
	return pipeline.ReportEntry{Module: "usage", Type: "estimated", Reason: reason}
}

// begun keeps on the local disk what a request that holds a part of a budget counts as if
// the process is killed before it has ended: everything that is held for it.
func (r *Records) begun(ctx context.Context, event *RequestLog) {
	if !r.Recorder.Keeps() || !event.held.ticket.HasBudget() {
		return
	}
	lost, report := event.exchange(), event.reported()
	report.Events = append(slices.Clone(report.Events), isEstimated("the process ended while the request was under way"))
	lost.Report = report.JSON()
	lost.Status, lost.ErrorFrom, lost.ErrorType = http.StatusBadGateway, "proxy", "api_error"
	lost.Input, lost.Output, lost.CostMicroUSD = event.held.most.Prompt, event.held.most.Answers, event.held.most.MicroUSD
	event.held.noted = r.Recorder.Begin(ctx, lost, event.held.ticket.Places())
}

// isOver lets go of what begun has kept: what became of the request is kept or recorded.
func (e *RequestLog) isOver() {
	e.held.noted.Withdraw()
	e.held.noted = spool.Record{}
}
