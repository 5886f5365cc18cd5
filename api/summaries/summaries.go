// Package summaries has models write summaries of lanes for workspaces that enable them, with the workspaces'
// own keys, after the exchanges that call for one.
package summaries

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/limits"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recorder"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/localcache"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/summary"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	// maxLanes bounds the number of remembered lanes with summaries.
	maxLanes = 20_000

	// lostAfter is how long after an epoch its summary counts as lost: longer than any attempt may take.
	lostAfter = 10 * time.Minute

	// cacheLife is how long after an answer the provider is assumed to cache a prompt: somewhat less than
	// their minimum of five minutes.
	cacheLife = 4 * time.Minute
)

// Service requests summaries. A nil Service doesn't request any.
type Service struct {
	Config

	worker *summary.Worker
	lanes  *localcache.Cache[[16]byte, warmLane] // by id
}

// warmLane is the service's memory of a lane.
type warmLane struct {
	asked int       // messages of the newest requested summary
	at    time.Time // of the newest answer
	size  int       // tokens of its cached prompt
}

// Config holds a Service's dependencies.
type Config struct {
	Settings  *proxysettings.Cache
	Upstream  upstream.Sender
	Recorder  *recorder.Recorder
	Limits    *limits.Limiter // of the API keys whose requests call for summaries
	Originals archive.Originals
	Store     summary.Store
	Lanes     summary.Lanes
	Models    *tokens.Models
	Counter   *tokens.Counter
	Log       *slog.Logger
	Now       func() time.Time

	// Spent receives every charged call, Ended the outcome of every attempt.
	Spent func(usage wire.Usage, microUSD int64)
	Ended func(outcome string)
}

// New returns a Service without starting it.
func New(config Config) (*Service, error) {
	lanes, err := localcache.New[[16]byte](localcache.Options[warmLane]{MaximumSize: maxLanes})
	if err != nil {
		return nil, fmt.Errorf("lanes with summaries: %w", err)
	}
	s := &Service{Config: config, lanes: lanes}
	s.worker = summary.NewWorker(summary.Config{
		Originals: config.Originals, Store: config.Store, Lanes: config.Lanes, Ask: s.Ask,
		Models: config.Models, Count: config.Counter.Count, Log: config.Log, Now: config.Now, Ended: s.ended,
	})
	return s, nil
}

// Request is a client's request that may call for a summary.
type Request struct {
	Key     tenants.APIKey
	Held    []limits.Held        // subjects whose limits apply
	Choice  proxysettings.Choice // the request's own settings for its target
	Account uuid.UUID            // of the provider that received it
	Header  http.Header
}

// Start starts the work in the background.
func (s *Service) Start() { s.worker.Start() }

// Stop ends the work. It may be called twice.
func (s *Service) Stop() { s.worker.Stop() }

// Ask is a summary.Ask with the workspace's own key.
func (s *Service) Ask(ctx context.Context, call summary.Call) (summary.Reply, error) {
	target, err := s.Settings.Target(ctx, call.Workspace, proxysettings.ProviderOf(call.Codec), proxysettings.Choice{Provider: call.Provider}, proxysettings.ModelIn(call.Body))
	if errors.Is(err, tenants.ErrNoProvider) {
		return summary.Reply{}, summary.ErrNoProvider
	}
	if err != nil {
		return summary.Reply{}, err
	}
	if call.Account != uuid.Nil && call.Account != target.KeyID {
		return summary.Reply{}, summary.ErrOtherAccount
	}
	redactor, err := s.Settings.Redactor(ctx, call.Workspace)
	if err != nil {
		return summary.Reply{}, err
	}
	body, _ := redactor.JSON(call.Body) // the archived body may be older than the setting
	answer, err := upstream.Ask(ctx, s.Upstream, upstream.Question{Path: call.Codec.Traits().Path, Header: call.Header, Body: body}, target)
	if err != nil {
		return summary.Reply{}, fmt.Errorf("%w: %w", summary.ErrUnreachable, err)
	}
	return summary.Reply{Status: answer.Status, Stream: answer.Stream, Body: answer.Body}, nil
}

// After requests a summary if an exchange calls for one: after an epoch, or when its prompt leaves less room
// than reserveTokens. It never waits.
func (s *Service) After(ctx context.Context, request Request, written *prompt.Prompt) {
	exchange := written.Exchange
	config := pipeline.SettingsOf[ipc.Config](exchange.Config)
	if s == nil || config.LLMCompression == (ipc.LLMCompression{}) || !takesSummary(request, written) {
		return
	}
	known, _ := s.lanes.Get(written.Lane.ID)
	if exchange.Lane.Summary != nil {
		known.asked = max(known.asked, exchange.Lane.Summary.Covers)
	}
	covers, again := s.calledFor(exchange, known.asked)
	if covers <= known.asked || covers > written.Lane.Archived() { // or the originals are not durable yet
		return
	}
	job := summary.Job{
		Scope: exchange.Scope, Session: written.Lane.Session, Lane: written.Lane.ID, Covers: covers, Chain: exchange.Conversation.Chain[:covers+1],
		Codec: exchange.Codec, Model: exchange.Request.Model, Window: cmp.Or(config.ContextWindow.Tokens(), exchange.Model.Window), Factor: exchange.Limits.Factor,
		Provider: request.Choice.Provider, Base: s.base(request, written, known), Again: again,
		Begin: s.within(request), Span: spans.Of(ctx),
		Settings: summary.Settings{
			Model: config.LLMCompression.Model, Prompt: config.LLMCompression.Prompt,
			MaxTokens: config.LLMCompression.MaxTokens, Timeout: config.LLMCompression.Timeout,
			Overrides: s.overrides(ctx, request, exchange, config.LLMCompression.Model),
		},
	}
	if exchange.Lane.Order != nil {
		job.Settings.Asked = exchange.Lane.Order.Instructions
	}
	if s.worker.Ask(job) {
		known.asked = covers
		s.lanes.Set(written.Lane.ID, known)
	}
}

// overrides returns the workspace's overrides for the model of the conversation, and for the model of
// summaries at its key. Overrides that can't be read are skipped, because a summary must not fail for them.
func (s *Service) overrides(ctx context.Context, request Request, exchange *pipeline.Exchange, model string) tokens.Overrides {
	set, err := s.Settings.Overrides(ctx, exchange.Scope.Workspace, request.Account)
	if err != nil || model == "" {
		return set
	}
	target, err := s.Settings.Target(ctx, exchange.Scope.Workspace, proxysettings.ProviderOf(exchange.Codec), proxysettings.Choice{Provider: request.Choice.Provider}, func() (string, error) { return model, nil })
	if err != nil || target.KeyID == request.Account {
		return set
	}
	there, err := s.Settings.Overrides(ctx, exchange.Scope.Workspace, target.KeyID)
	if err != nil {
		return set
	}
	prices := map[string]tokens.Price{}
	maps.Copy(prices, set.Prices)
	for _, name := range []string{model, s.Models.Lookup(model).Name} {
		delete(prices, name)
		if price, has := there.Prices[name]; has {
			prices[name] = price
		}
	}
	set.Prices = prices
	return set
}

// within returns a function that holds a summary to the budgets of the request that called for it, as the
// next request would be; nil without budgets.
func (s *Service) within(request Request) func(context.Context, tokens.Model, int64) (func(int64), error) {
	budgets := limits.Budgets(request.Held)
	if len(budgets) == 0 {
		return nil
	}
	return func(ctx context.Context, model tokens.Model, microUSD int64) (func(int64), error) {
		if !request.Key.Limits.AllowUnpriced && model.Price == (tokens.Price{}) {
			return nil, tenants.Forbidden{Code: "model_without_price", Message: "Requests of the key count against a budget, and the price of the model for summaries is not known."}
		}
		ticket, err := s.Limits.Admit(ctx, budgets...)
		if err == nil {
			err = ticket.Take(ctx, 0, 0, microUSD)
		}
		if err != nil {
			ticket.Settle(context.WithoutCancel(ctx), 0, 0)
			return nil, err
		}
		return func(microUSD int64) { ticket.Settle(context.WithoutCancel(ctx), 0, microUSD) }, nil
	}
}

// takesSummary reports whether an exchange's lane may have summaries at all.
func takesSummary(request Request, written *prompt.Prompt) bool {
	exchange := written.Exchange
	config := pipeline.SettingsOf[ipc.Config](exchange.Config)
	return written.Lane != nil && written.Lane.Kind != session.Side && exchange.Request.ReadOnly == "" && !exchange.Lane.Pinned && exchange.Limits.Limit > 0 &&
		exchange.Class.Kind != client.Compaction && config.DeepestLevel >= 2 && config.ArchiveToBlob &&
		request.Choice.Key == "" // a key for one use isn't used again
}

// calledFor returns how many messages a new summary should cover, given that one of asked messages was
// already requested; 0 if no summary is due. again says that another process may have requested it, or this
// one before a restart.
func (s *Service) calledFor(exchange *pipeline.Exchange, asked int) (covers int, again bool) {
	if isEpoch(exchange) {
		return exchange.Lane.Projection.Covers, false
	}
	if standing := exchange.Lane.Projection; standing != nil && standing.Covers > asked && s.Now().Sub(standing.At) > lostAfter {
		return standing.Covers, true
	}
	return s.aheadOf(exchange, asked), false
}

// aheadOf returns how many messages a summary should cover because the prompt leaves less room than the
// workspace wants; 0 if there is enough.
func (s *Service) aheadOf(exchange *pipeline.Exchange, asked int) int {
	config := pipeline.SettingsOf[ipc.Config](exchange.Config)
	llm := config.LLMCompression
	if llm.ReserveTokens == 0 || exchange.Report.After <= exchange.Limits.Limit-llm.ReserveTokens {
		return 0
	}
	keep := llm.KeepRecentTokens
	if keep == 0 {
		keep = config.PreserveTokens
	}
	newest, covers := 0, 0
	for i := len(exchange.Conversation.Turns) - 1; i > 0 && covers == 0; i-- {
		if newest += sizeOf(exchange, exchange.Conversation.Turns[i].From, exchange.Conversation.Turns[i].To); newest >= keep {
			covers = exchange.Conversation.Turns[i].From
		}
	}
	// Not again with every request: the new messages must be as many as the kept ones.
	if covers <= asked || sizeOf(exchange, asked, covers) < max(keep, 1) {
		return 0
	}
	return covers
}

func isEpoch(exchange *pipeline.Exchange) bool {
	return exchange.Report.Archived > 0 && exchange.Lane.Projection != nil
}

// sizeOf returns the model's tokens of the client's own messages.
func sizeOf(exchange *pipeline.Exchange, from, to int) int {
	sum := 0
	for _, digest := range exchange.Conversation.Digests[from:to] {
		sum += digest.Tokens
	}
	return int(float64(sum) * exchange.Limits.Factor)
}

// base returns a prompt that a summary can extend: the one that was sent, or, after an epoch, the one that
// would have been sent without it, because the provider still caches the lane's last prompt of that form. It
// is nil if absent or no longer cached.
func (s *Service) base(request Request, written *prompt.Prompt, known warmLane) *summary.CachedPrompt {
	exchange := written.Exchange
	base := &summary.CachedPrompt{
		Header: baseHeader(request.Header, written.Beta), Account: request.Account, Output: exchange.Request.MaxOutput,
	}
	if known.size == 0 || exchange.Conversation.Redacts() {
		return nil // the provider has never cached a prompt of the lane, or the model should read the archived messages
	}
	if !isEpoch(exchange) {
		base.Tokens, base.Cached = exchange.Report.After, exchange.Report.After
		base.Body = bytes.Clone(written.Body)
		return base
	}
	if exchange.Report.Compression != pipeline.Epoch || s.Now().Sub(known.at) > cacheLife {
		return nil
	}
	standing := written.Standing()
	base.Header = baseHeader(request.Header, standing.Beta)
	base.Tokens, base.Cached = standing.Tokens, min(known.size, standing.Tokens)
	base.Body = bytes.Clone(standing.Body)
	return base
}

// baseHeader returns the headers that affect how a provider reads a prompt.
func baseHeader(sent http.Header, beta string) map[string]string {
	header := map[string]string{}
	for _, name := range []string{"Anthropic-Version", "Openai-Organization", "Openai-Project"} {
		if value := sent.Get(name); value != "" {
			header[name] = value
		}
	}
	betas := sent.Values("Anthropic-Beta")
	if beta != "" {
		betas = append(slices.Clip(betas), beta)
	}
	if len(betas) > 0 {
		header["Anthropic-Beta"] = strings.Join(betas, ",")
	}
	return header
}

// Heard notes that a provider has answered a prompt, and how much of it is cached now.
func (s *Service) Heard(sent prompt.Sent, usage wire.Usage) {
	if s == nil || sent.Lane == nil || !sent.Summarizes || !usage.Reported {
		return
	}
	known, _ := s.lanes.Get(sent.Lane.ID)
	known.at = s.Now()
	if cached := usage.CacheRead + usage.CacheWrite; cached > 0 {
		known.size = cached // keep the size if one answer lacks cache figures, because providers spread their load
	}
	s.lanes.Set(sent.Lane.ID, known)
}

// ended counts an attempt and charges its cost to the workspace.
func (s *Service) ended(job summary.Job, attempt session.SummaryAttempt) {
	outcome := "accepted"
	if attempt.Reason != "" {
		outcome = "rejected"
	}
	s.Ended(outcome)
	usage := attempt.Usage
	if !usage.Reported {
		return
	}
	s.Spent(usage, attempt.CostMicroUSD)
	// The session has been charged already, with the attempt itself.
	s.Recorder.Put(recorder.OwnCall(tenants.Exchange{
		Workspace: job.Scope.Workspace, At: attempt.At,
		Request: tenants.ExchangeRequest{APIKey: job.Scope.APIKey, Endpoint: job.Codec.Traits().Path, Model: attempt.Model, Class: "summary"},
		Answer:  tenants.ExchangeAnswer{Provider: proxysettings.ProviderOf(job.Codec)},
		Tokens:  tenants.ExchangeTokens{Input: usage.Input, CacheRead: usage.CacheRead, CacheWrite: usage.CacheWrite, Output: usage.Output},
		Cost:    tenants.ExchangeCost{CostMicroUSD: attempt.CostMicroUSD},
	}))
}
