package api

import (
	"context"
	"crypto/sha256"
	"log/slog"
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

// RequestLog is what is known of one exchange. It is made when the request arrives,
// filled on the way, and written once at the end: to the log, the metrics and
// the recorder. It never holds a key, a body or a prompt.
type RequestLog struct {
	ID          uuid.UUID
	At          time.Time
	Endpoint    string
	Method      string
	Client      string
	Version     string      // of the client; "" if it named none
	Class       client.Kind // what the request is to its client
	Workspace   tenants.WorkspaceID
	APIKey      uuid.UUID
	KeyPrefix   string
	Session     uuid.UUID
	Lane        uuid.UUID
	Source      string // where the session's name came from
	Provider    string
	ProviderKey uuid.UUID // uuid.Nil if none that is stored
	Model       string
	ModelFamily string
	Stream      bool
	Status      int
	Attempts    int
	ErrorFrom   string // "proxy", "provider"; empty if none
	ErrorType   string
	Aborted     string // side that broke the answer off: "client", "provider", or "proxy" if the key was revoked; empty if none
	Err         error  // cause of one of our failures

	Overhead  time.Duration // ours, before the provider is asked
	Archiving time.Duration // the part of it in which an epoch's originals became durable
	TTFB      time.Duration
	Duration  time.Duration

	Report       pipeline.Report
	Trial        *pipeline.Report // what the pipeline would have done in a dry run; nil: it was none
	Usage        wire.Usage
	CostMicroUSD int64
	NetMicroUSD  int64

	firstMicroUSD int64 // the part of the cost that earlier attempts had: answers that ended at the model's window, keys that did not answer

	// The parts of NetMicroUSD beside input not sent.
	UnreadMicroUSD, RewrittenMicroUSD int64
	Reach                             bool // the client's prompt was too long to be sent, and ours was answered

	served wire.Served // on what terms it was answered

	Miss cost.Miss // what the provider's cache did not have although it should

	cancel context.CancelCauseFunc // ends the request; nil if nothing may
	leave  func()                  // takes it out of those under way; nil if it is not among them

	Tags    tenants.Tags // that the client gave
	EndUser string       // whom the application speaks for, as session.EndUserID names them; "" if it did not say

	ticket *limits.Ticket // what is counted of the request; nil if nothing
	most   prompt.Most    // what it may come to; zero if it is not to be charged for

	// owes says that the provider may charge for the request, and that nobody has read yet
	// for how much.
	owes atomic.Bool

	traced traced

	// What the recorder gets beside the event itself.
	position   int // messages in the request
	projection int // number of the projection in the prompt; 0 if none
	update     *session.Update
	signed     map[string]string   // headers of our own that nothing else here tells; nil if none
	said       []byte              // what the provider said where it refused, without secrets; nil if nothing that is kept
	noStore    bool                // nothing of it is to be kept but figures
	redactor   *redaction.Redactor // nil if what is said is stored as it came
	request    *recorder.Request   // what the request added to its session, if it has one
	report     []byte              // Report as it is kept; nil: not written yet
	isKept     bool                // on the local disk, unless that failed
	kept       spool.Record
	noted      spool.Record // what it counts as if the process is killed
}

// note keeps one of our headers that the answer has and nothing else of the event tells.
func (e *RequestLog) note(name, value string) {
	if e.signed == nil {
		e.signed = make(map[string]string, 1)
	}
	e.signed[name] = value
}

// log writes the event: one line for one exchange.
func (e *RequestLog) log(ctx context.Context, logger *slog.Logger) {
	level := slog.LevelInfo
	if e.ErrorFrom == "proxy" && e.Status >= 500 {
		level = slog.LevelError
	}
	attributes := []slog.Attr{
		slog.String("id", e.ID.String()),
		slog.String("method", e.Method),
		slog.String("endpoint", e.Endpoint),
		slog.Int("status", e.Status),
		slog.String("client", e.Client),
		slog.String("client_version", e.Version),
		slog.String("class", string(e.Class)),
		slog.String("workspace", e.Workspace.String()),
		slog.String("key", e.KeyPrefix),
		slog.String("session", e.Session.String()),
		slog.String("lane", e.Lane.String()),
		slog.String("provider", e.Provider),
		slog.String("provider_key", e.ProviderKey.String()),
		slog.String("model", e.Model),
		slog.Bool("stream", e.Stream),
		slog.String("compression", string(e.Report.Compression)),
		slog.Int("tokens_before", e.Report.Before),
		slog.Int("tokens_after", e.Report.After),
		slog.Int("prompt_tokens", e.Usage.Prompt()),
		slog.Int("output_tokens", e.Usage.Output),
		slog.Duration("overhead", e.Overhead),
		slog.Duration("ttfb", e.TTFB),
		slog.Duration("duration", e.Duration),
	}
	if e.ErrorFrom != "" {
		attributes = append(attributes, slog.String("error_from", e.ErrorFrom), slog.String("error_type", e.ErrorType))
	}
	if e.Miss.Cause != cost.None {
		attributes = append(attributes, slog.String("cache_miss", string(e.Miss.Cause)), slog.Int("missed_tokens", e.Miss.Tokens))
	}
	if e.Aborted != "" {
		attributes = append(attributes, slog.String("aborted", e.Aborted))
	}
	if e.Err != nil {
		attributes = append(attributes, slog.String("error", e.Err.Error()))
	}
	for _, happened := range e.Report.Events {
		attributes = append(attributes, slog.String(happened.Module+"."+happened.Type, happened.Reason))
	}
	logger.LogAttrs(ctx, level, "exchange", attributes...)
}

// exchange returns the event in the form in which usage is kept.
func (e *RequestLog) exchange() tenants.Exchange {
	exchange := tenants.Exchange{
		ID: e.ID, Workspace: e.Workspace, At: e.At,
		ExchangeRequest: tenants.ExchangeRequest{
			Session: e.Session, Lane: e.Lane, APIKey: e.APIKey, Endpoint: e.Endpoint, Model: e.Model, Client: e.Client,
			Class: string(e.Class), Stream: e.Stream, Position: e.position, Tags: e.Tags, EndUser: e.EndUser,
		},
		ExchangeAnswer: tenants.ExchangeAnswer{
			Provider: tenants.Provider(e.Provider), ProviderKey: e.ProviderKey, Status: e.Status, ErrorFrom: e.ErrorFrom,
			ErrorType: e.ErrorType, Attempts: e.Attempts, Signed: e.signed,
			Served: tenants.Served{ServiceTier: e.served.Tier, Speed: e.served.Speed, Region: e.served.Region},
		},
		ExchangePrompt: tenants.ExchangePrompt{
			Compression: string(e.Report.Compression), TokensBefore: e.Report.Before, TokensAfter: e.Report.After,
			Window: e.Report.Limit, Levels: e.Report.Levels, Takes: e.Report.Takes, Target: e.Report.Target, Reach: e.Reach,
			Bridged: bridged(e.Report), Compacted: e.Report.Compacted() != nil, Projection: e.projection, Report: e.report,
		},
		ExchangeTokens: tenants.ExchangeTokens{
			Input: e.Usage.Input, CacheRead: e.Usage.CacheRead, CacheWrite: e.Usage.CacheWrite, Output: e.Usage.Output,
			MissCause: string(e.Miss.Cause), MissedTokens: e.Miss.Tokens,
		},
		ExchangeCost: tenants.ExchangeCost{
			CostMicroUSD: e.CostMicroUSD, NetMicroUSD: e.NetMicroUSD, UnreadMicroUSD: e.UnreadMicroUSD,
			RewrittenMicroUSD: e.RewrittenMicroUSD, PredictedMicroUSD: e.Report.Predicted(),
		},
		ExchangeTimes: tenants.ExchangeTimes{Overhead: e.Overhead, TTFB: e.TTFB, Duration: e.Duration},
	}
	if exchange.Report == nil {
		report := e.reported()
		exchange.Report = report.JSON()
	}
	if e.update != nil && len(e.update.Answer) > 0 {
		hash := sha256.Sum256(e.update.Answer)
		exchange.Answer = hash[:]
	}
	return exchange
}

// reported returns the report as it is kept: with the client's version where its prompt
// did not come down as it should, which a new version may be the reason of.
func (e *RequestLog) reported() pipeline.Report {
	report := e.Report
	if report.Compression == pipeline.Unreachable || slices.ContainsFunc(report.Events, func(event pipeline.ReportEntry) bool { return event.Type == "protection_lifted" }) {
		report.Version = e.Version
	}
	return report
}

// bridged reports whether something that a client's own summary had lost was put back.
func bridged(report pipeline.Report) bool {
	return slices.ContainsFunc(report.Events, func(event pipeline.ReportEntry) bool {
		return event.Module == compactionbridge.Name && event.Type == compactionbridge.Recovered
	})
}
