package api

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"palimpsest/api/limits"
	"palimpsest/api/spool"
	"palimpsest/pipeline"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
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

// money holds a request's usage, cost and savings.
type money struct {
	Usage        wire.Usage
	CostMicroUSD int64
	NetMicroUSD  int64

	firstMicroUSD int64 // cost of earlier attempts: answers that ended at the model's window, and unanswered keys

	// The parts of NetMicroUSD other than unsent input.
	UnreadMicroUSD, RewrittenMicroUSD int64
	Reach                             bool // the client's prompt was too long for the model, and ours was answered

	served wire.Served // terms of the answer, such as the service tier

	Miss cost.Miss // tokens missing from the provider's cache although expected there
}

// used sets the request's usage.
func (m *money) used(usage wire.Usage) { m.Usage = usage }

// estimated sets the request's estimated usage and cost.
func (m *money) estimated(usage wire.Usage, microUSD int64) {
	m.Usage, m.CostMicroUSD = usage, microUSD+m.firstMicroUSD
}

// first adds the cost of an attempt before another one.
func (m *money) first(microUSD int64) { m.firstMicroUSD += microUSD }

// unanswered counts the cost of attempts if all of them stayed unanswered.
func (m *money) unanswered() {
	if m.CostMicroUSD == 0 {
		m.CostMicroUSD = m.firstMicroUSD
	}
}

// settled sets the cost and the savings of the answer, and its terms.
func (m *money) settled(counted cost.Money, served wire.Served) {
	m.served = served
	m.CostMicroUSD, m.NetMicroUSD, m.Miss = counted.Cost+m.firstMicroUSD, counted.Net-m.firstMicroUSD, counted.Miss
	m.UnreadMicroUSD, m.RewrittenMicroUSD, m.Reach = counted.Unread, counted.Rewritten, counted.Reach
}

// held holds a request's share of limits while it is under way.
type held struct {
	ticket *limits.Ticket // the request's share of limits; nil without limits
	most   prompt.Most    // its largest possible usage; zero if it is free of charge
	noted  spool.Record   // its cost if the process is killed

	// owes says that the provider may charge for the request, and that the amount is still unknown.
	owes atomic.Bool
}

// signLimits sets the limits of a request's key and the remaining amounts. The provider's own x-ratelimit-*
// headers remain unchanged.
func signLimits(set func(name, value string), ticket *limits.Ticket) {
	quota, left := ticket.Quota(), ticket.Left()
	if quota == (tenants.Quota{}) {
		return
	}
	for _, limit := range tenants.QuotaLimits() {
		if most := limit.Of(quota); most > 0 {
			set("Ratelimit-Limit-"+limit.Header, limit.Text(most))
			set("Ratelimit-Remaining-"+limit.Header, limit.Text(limit.Of(left)))
		}
	}
}
