package api

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/limits"
	"palimpsest/api/recorder"
	"palimpsest/api/spool"
	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

// RequestLog describes one exchange. It is made when the request arrives, filled on the way, and written once
// at the end: to the log, the metrics and the recorder. It never holds a key, a body or a prompt.
type RequestLog struct {
	ID          uuid.UUID
	Endpoint    string
	Method      string
	Client      string
	Version     string      // of the client; "" if absent
	Class       client.Kind // role of the request for its client
	Session     uuid.UUID
	Lane        uuid.UUID
	Source      string // where the session's name came from
	Provider    string
	ProviderKey uuid.UUID // uuid.Nil without a stored key
	Model       string
	ModelFamily string
	Stream      bool
	Attempts    int

	Report pipeline.Report
	Trial  *pipeline.Report // effect of the pipeline in a dry run; nil unless it was one

	from    sender
	outcome outcome
	times   times
	money   money
	held    held
	record  toRecord
	traced  traced
}

// sender describes the sender of a request.
type sender struct {
	Workspace tenants.WorkspaceID
	APIKey    uuid.UUID
	KeyPrefix string
	Tags      tenants.Tags // from the client
	EndUser   string       // user of the application, in the form of session.EndUserID; "" if absent

	cancel context.CancelCauseFunc // ends the request; nil if it can't be ended
	leave  func()                  // removes it from the requests under way; nil if it is not among them
}

// toRecord holds the recorder's input beside the log of a request.
type toRecord struct {
	position   int // messages in the request
	projection int // number of the projection in the prompt; 0 if absent
	update     *session.Update
	signed     map[string]string   // our own headers that no other field holds; nil if there aren't any
	noStore    bool                // keep only figures
	redactor   *redaction.Redactor // nil if text is stored as it came
	request    *recorder.Request   // the request's addition to its session, if it has one
	report     []byte              // RequestLog.Report as stored; nil until written
	exchange   *tenants.Exchange   // the stored form; nil until the first call of recorded
	isKept     bool                // on the local disk, unless that failed
	kept       spool.Record
}

// note keeps one of our answer headers that no other field of the event holds.
func (e *RequestLog) note(name, value string) {
	if e.record.signed == nil {
		e.record.signed = make(map[string]string, 1)
	}
	e.record.signed[name] = value
}

// log writes the event: one line for one exchange.
func (e *RequestLog) log(ctx context.Context, logger *slog.Logger) {
	level := slog.LevelInfo
	if e.outcome.ErrorFrom == "proxy" && e.outcome.Status >= 500 {
		level = slog.LevelError
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	attributes := []slog.Attr{
		slog.String("id", e.ID.String()),
		slog.String("method", e.Method),
		slog.String("endpoint", e.Endpoint),
		slog.Int("status", e.outcome.Status),
		slog.String("client", e.Client),
		slog.String("client_version", e.Version),
		slog.String("class", string(e.Class)),
		slog.String("workspace", e.from.Workspace.String()),
		slog.String("key", e.from.KeyPrefix),
		slog.String("session", e.Session.String()),
		slog.String("lane", e.Lane.String()),
		slog.String("provider", e.Provider),
		slog.String("provider_key", e.ProviderKey.String()),
		slog.String("model", e.Model),
		slog.Bool("stream", e.Stream),
		slog.String("compression", string(e.Report.Compression)),
		slog.Int("tokens_before", e.Report.Before),
		slog.Int("tokens_after", e.Report.After),
		slog.Int("prompt_tokens", e.money.Usage.Prompt()),
		slog.Int("output_tokens", e.money.Usage.Output),
		slog.Duration("overhead", e.times.Overhead),
		slog.Duration("ttfb", e.times.TTFB),
		slog.Duration("duration", e.times.Duration),
	}
	if e.outcome.ErrorFrom != "" {
		attributes = append(attributes, slog.String("error_from", e.outcome.ErrorFrom), slog.String("error_type", e.outcome.ErrorType))
	}
	if e.money.Miss.Cause != cost.None {
		attributes = append(attributes, slog.String("cache_miss", string(e.money.Miss.Cause)), slog.Int("missed_tokens", e.money.Miss.Tokens))
	}
	if e.outcome.Aborted != "" {
		attributes = append(attributes, slog.String("aborted", e.outcome.Aborted))
	}
	if e.outcome.Err != nil {
		attributes = append(attributes, slog.String("error", e.outcome.Err.Error()))
	}
	for _, happened := range e.Report.Events {
		attributes = append(attributes, slog.String(happened.Module+"."+happened.Type, happened.Reason))
	}
	logger.LogAttrs(ctx, level, "exchange", attributes...)
}

// recorded returns the event in the form for usage records, in the memory of earlier calls.
func (e *RequestLog) recorded() *tenants.Exchange {
	if e.record.exchange == nil {
		e.record.exchange = new(tenants.Exchange)
	}
	*e.record.exchange = e.exchange()
	return e.record.exchange
}

// exchange returns the event in the form for usage records.
func (e *RequestLog) exchange() tenants.Exchange {
	exchange := tenants.Exchange{
		ID: e.ID, Workspace: e.from.Workspace, At: e.times.At,
		Request: tenants.ExchangeRequest{
			Session: e.Session, Lane: e.Lane, APIKey: e.from.APIKey, Endpoint: e.Endpoint, Model: e.Model, Client: e.Client,
			Class: string(e.Class), Stream: e.Stream, Position: e.record.position, Tags: e.from.Tags, EndUser: e.from.EndUser,
		},
		Answer: tenants.ExchangeAnswer{
			Provider: tenants.Provider(e.Provider), ProviderKey: e.ProviderKey, Status: e.outcome.Status, ErrorFrom: e.outcome.ErrorFrom,
			ErrorType: e.outcome.ErrorType, Attempts: e.Attempts, Signed: e.record.signed,
			Served: tenants.Served{ServiceTier: e.money.served.Tier, Speed: e.money.served.Speed, Region: e.money.served.Region, AnsweredBy: e.money.served.Model},
		},
		Prompt: tenants.ExchangePrompt{
			Compression: string(e.Report.Compression), TokensBefore: e.Report.Before, TokensAfter: e.Report.After,
			Window: e.Report.Limit, Levels: e.Report.Levels, Takes: e.Report.Takes, Target: e.Report.Target, Reach: e.money.Reach,
			Bridged: bridged(e.Report), Compacted: e.Report.Compacted() != nil, Projection: e.record.projection, Report: e.record.report,
		},
		Tokens: tenants.ExchangeTokens{
			Input: e.money.Usage.Input, CacheRead: e.money.Usage.CacheRead, CacheWrite: e.money.Usage.CacheWrite, Output: e.money.Usage.Output,
			MissCause: string(e.money.Miss.Cause), MissedTokens: e.money.Miss.Tokens,
		},
		Cost: tenants.ExchangeCost{
			CostMicroUSD: e.money.CostMicroUSD, NetMicroUSD: e.money.NetMicroUSD, UnreadMicroUSD: e.money.UnreadMicroUSD,
			RewrittenMicroUSD: e.money.RewrittenMicroUSD, PredictedMicroUSD: e.Report.Predicted(),
		},
		Times: tenants.ExchangeTimes{Overhead: e.times.Overhead, TTFB: e.times.TTFB, Duration: e.times.Duration},
	}
	if exchange.Prompt.Report == nil {
		report := e.reported()
		exchange.Prompt.Report = report.JSON()
	}
	if e.record.update != nil && len(e.record.update.Messages.Answer) > 0 {
		hash := sha256.Sum256(e.record.update.Messages.Answer)
		exchange.Answer.Answer = hash[:]
	}
	return exchange
}

// reported returns the report for storage. It includes the client's version if its prompt wasn't compressed
// as expected, because a new version may be the reason.
func (e *RequestLog) reported() pipeline.Report {
	report := e.Report
	if report.Compression == pipeline.Unreachable || slices.ContainsFunc(report.Events, func(event pipeline.ReportEntry) bool { return event.Type == "protection_lifted" }) {
		report.Version = e.Version
	}
	return report
}

// bridged reports whether details that a client's own summary had lost were put back.
func bridged(report pipeline.Report) bool {
	return slices.ContainsFunc(report.Events, func(event pipeline.ReportEntry) bool {
		return event.Module == compactionbridge.Name && event.Type == compactionbridge.Recovered
	})
}

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
	lost.Prompt.Report = report.JSON()
	lost.Answer.Status, lost.Answer.ErrorFrom, lost.Answer.ErrorType = http.StatusBadGateway, "proxy", "api_error"
	lost.Tokens.Input, lost.Tokens.Output, lost.Cost.CostMicroUSD = event.held.most.Prompt, event.held.most.Answers, event.held.most.MicroUSD
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
