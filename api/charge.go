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

// spoken is a rough output rate, in tokens per second, of a model that thinks without output.
const spoken = 100

// charge estimates the cost of an ended request if the provider didn't get to report it, and leaves others as
// they are. A provider ends a stream when its connection ends, so the prompt counts and the output that the
// model may have thought by then. It may write an answer in one piece to its end although the client is gone,
// so everything held counts.
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

// thought returns how many tokens a model may have written since the request was sent, without any of them
// arriving.
func (e *RequestLog) thought(now time.Time) int {
	return int((now.Sub(e.times.At)-e.times.Overhead)/time.Second) * spoken
}

// estimated reports that the request's usage is an estimate.
func (e *RequestLog) estimated(reason string) {
	e.Report.Events = append(e.Report.Events, isEstimated(reason))
}

func isEstimated(reason string) pipeline.ReportEntry {
	return pipeline.ReportEntry{Module: "usage", Type: "estimated", Reason: reason}
}

// begun stores on the local disk how much a request with a share of a budget counts if the process is killed
// before it ends: everything held for it.
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

// isOver withdraws the entry of begun, because the outcome of the request is kept or recorded.
func (e *RequestLog) isOver() {
	e.held.noted.Withdraw()
	e.held.noted = spool.Record{}
}
