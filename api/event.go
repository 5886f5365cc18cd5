package api

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"palimpsest/api/recorder"
	"palimpsest/api/spool"
	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/session"
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
		ExchangeRequest: tenants.ExchangeRequest{
			Session: e.Session, Lane: e.Lane, APIKey: e.from.APIKey, Endpoint: e.Endpoint, Model: e.Model, Client: e.Client,
			Class: string(e.Class), Stream: e.Stream, Position: e.record.position, Tags: e.from.Tags, EndUser: e.from.EndUser,
		},
		ExchangeAnswer: tenants.ExchangeAnswer{
			Provider: tenants.Provider(e.Provider), ProviderKey: e.ProviderKey, Status: e.outcome.Status, ErrorFrom: e.outcome.ErrorFrom,
			ErrorType: e.outcome.ErrorType, Attempts: e.Attempts, Signed: e.record.signed,
			Served: tenants.Served{ServiceTier: e.money.served.Tier, Speed: e.money.served.Speed, Region: e.money.served.Region, AnsweredBy: e.money.served.Model},
		},
		ExchangePrompt: tenants.ExchangePrompt{
			Compression: string(e.Report.Compression), TokensBefore: e.Report.Before, TokensAfter: e.Report.After,
			Window: e.Report.Limit, Levels: e.Report.Levels, Takes: e.Report.Takes, Target: e.Report.Target, Reach: e.money.Reach,
			Bridged: bridged(e.Report), Compacted: e.Report.Compacted() != nil, Projection: e.record.projection, Report: e.record.report,
		},
		ExchangeTokens: tenants.ExchangeTokens{
			Input: e.money.Usage.Input, CacheRead: e.money.Usage.CacheRead, CacheWrite: e.money.Usage.CacheWrite, Output: e.money.Usage.Output,
			MissCause: string(e.money.Miss.Cause), MissedTokens: e.money.Miss.Tokens,
		},
		ExchangeCost: tenants.ExchangeCost{
			CostMicroUSD: e.money.CostMicroUSD, NetMicroUSD: e.money.NetMicroUSD, UnreadMicroUSD: e.money.UnreadMicroUSD,
			RewrittenMicroUSD: e.money.RewrittenMicroUSD, PredictedMicroUSD: e.Report.Predicted(),
		},
		ExchangeTimes: tenants.ExchangeTimes{Overhead: e.times.Overhead, TTFB: e.times.TTFB, Duration: e.times.Duration},
	}
	if exchange.Report == nil {
		report := e.reported()
		exchange.Report = report.JSON()
	}
	if e.record.update != nil && len(e.record.update.Answer) > 0 {
		hash := sha256.Sum256(e.record.update.Answer)
		exchange.Answer = hash[:]
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
