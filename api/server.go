// Package api is the proxy's HTTP edge: it takes a client's request through authentication, the pipeline and
// the provider, and relays the answer. exchange.go handles one exchange from top to bottom.
package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/api/failover"
	"palimpsest/api/limits"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recall"
	"palimpsest/api/recorder"
	"palimpsest/api/summaries"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// Server is the proxy.
type Server struct {
	Gate
	Records

	Prompts  *prompt.Writer
	Upstream upstream.Sender

	// Summaries lets models write summaries of lanes; disabled if nil.
	Summaries *summaries.Service

	// Answers caches answers to equal questions; disabled if nil.
	Answers *semanticcache.Cache

	// Recall lets models look things up in the archive; disabled if nil.
	Recall *recall.Server

	// Failover remembers how provider keys work. Without it every request goes to its first key only.
	Failover *failover.Keys

	// Concurrency bounds the requests that a workspace has open; no bound if nil.
	Concurrency *Concurrency

	// Bytes bounds the bytes of request bodies in flight. Optional.
	Bytes *Bytes

	// Contact is whom to ask about a suspension: an address or a page; "" means the person who runs the
	// installation.
	Contact string

	// Tracer traces requests. Optional.
	Tracer *spans.Tracer

	buffers sync.Pool // of *[]byte, relayBuffer long
	bodies  bodies
	lists   modelLists
}

// Gate decides which requests are admitted, and where they go.
type Gate struct {
	Keys     tenants.KeyAuthenticator
	Settings *proxysettings.Cache

	// Limits enforces the quotas of API keys; disabled if nil.
	Limits *limits.Limiter

	// Address returns the address of a request's client; the peer's address if nil.
	Address func(*http.Request) string

	// Origins decides which pages may read answers in a browser. Without it, no page may.
	Origins *Origins

	// RequireVerified refuses the requests of workspaces without any owner who has a verified address.
	RequireVerified bool

	underway underway
	plain    plainKeys
}

// Records writes about requests to the log, to metrics, and to the recorder.
type Records struct {
	Recorder *recorder.Recorder
	Metrics  *Metrics
	Log      *slog.Logger
	Now      func() time.Time
}

// Interface guard.
var _ upstream.Sender = (*upstream.Client)(nil)

// ready is an answer that needs no provider.
type ready struct {
	contentType string
	body        []byte
}

// readyAnswer returns the answer to a request that needs no provider: a module's, otherwise a cached one; nil
// if the provider is needed.
func readyAnswer(forward forward, written *prompt.Prompt, cached *semanticcache.Lookup) *ready {
	if written.Exchange != nil && written.Exchange.Reply != nil && forward.purpose == converse {
		return replyOf(forward.codec, written.Exchange)
	}
	if entry := cached.Entry(); entry != nil {
		return &ready{contentType: entry.ContentType, body: entry.Answer}
	}
	return nil
}

// replyOf returns a module's answer in the client's format.
func replyOf(codec wire.Codec, exchange *pipeline.Exchange) *ready {
	answerer, is := codec.(wire.Answerer)
	if !is {
		return nil
	}
	reply, stream := exchange.Reply, exchange.Request.Stream
	said := wire.Said{ID: reply.ID, Model: exchange.Request.Model, Text: reply.Text, At: reply.At}
	if stream {
		return &ready{contentType: "text/event-stream; charset=utf-8", body: answerer.Answer(said, true)}
	}
	return &ready{contentType: "application/json", body: answerer.Answer(said, false)}
}

// answerReady answers a request without the provider: with a module's answer, or with a cached one, byte for
// byte as the provider sent it then. Since the provider doesn't see the exchange, it is free and teaches
// nothing about the provider.
func (s *Server) answerReady(c echo.Context, event *RequestLog, forward forward, written *prompt.Prompt, found *ready) error {
	announced := s.Prompts.Announce(written, event.Client, event.times.At)
	stored := s.recordRequest(c.Request().Context(), event, written, forward.body)
	s.aside(c.Request().Context(), event, func() { s.recordReady(event, forward.codec, written, found) })
	asksUsage, replied := written.AsksUsage, written.Exchange.Reply != nil
	forward.body.done()
	response := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {found.contentType}},
		Body: io.NopCloser(bytes.NewReader(found.body)), ContentLength: int64(len(found.body)),
	}
	filter := withoutUsage(forward.codec, prompt.Sent{AsksUsage: asksUsage}, response)
	announced.Wait(c.Request().Context())
	if replied {
		waitFor(c.Request().Context(), stored)
	}
	return finish(s.relay(c, event, response, ignore{}, filter, func() {}))
}

// storedWithin bounds how long an answer waits for the request to be stored.
const storedWithin = time.Second

// waitFor waits until the request is stored, so that a client that continues from its summary at once finds
// its earlier history in the archive. Without a provider, the recorder has no other time to store it.
func waitFor(ctx context.Context, stored <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, storedWithin)
	defer cancel()
	select {
	case <-stored:
	case <-ctx.Done():
	}
}

// recordReady prepares the record of an answer that needed no provider.
func (s *Server) recordReady(event *RequestLog, codec wire.Codec, written *prompt.Prompt, found *ready) {
	event.record.position = len(written.Exchange.Conversation.Digests)
	if written.Lane == nil {
		return
	}
	tap := codec.Tap(isStream(found.contentType))
	_, _ = tap.Write(found.body) // a tap never fails
	update := written.Lane.Update(written.Exchange.Scope, event.Model, event.times.At)
	update.Client, update.Messages.Position, update.Messages.Head = event.Client, event.record.position, written.Exchange.Conversation.Chain[event.record.position]
	update.Increment.Continued = session.HasHistory(written.Exchange.Conversation.Digests) || written.Exchange.Request.Previous != ""
	update.Increment.Exchanges, update.Increment.TokensBefore, update.Increment.TokensAfter = 1, event.Report.Before, event.Report.After
	answer := tap.Answer()
	update.Messages.Answer, _ = event.record.redactor.JSON(answer.Spoken(codec)) // counted when the client sends it again
	event.record.update = &update
}

// warningOf tells a client why its request passed without any module; "" if it didn't.
func warningOf(restraint tenants.Restraint) string {
	switch restraint.Reason {
	case tenants.PaymentFailed:
		return "uncompressed: a payment for this workspace failed, see the page Billing"
	case tenants.QuotaUsed:
		return "uncompressed: this month's exchanges of the plan Free are used up, see the page Billing"
	case tenants.Unrestrained:
	}
	return ""
}

// pipeline answers with the effective pipeline of the request's key and the source of each value.
func (s *Server) pipeline(c echo.Context) error {
	request := c.Request()
	codec := codecFor(request)
	event := s.begin(request, "/v1/pipeline")
	key, err := s.authenticate(request.Context(), request, event)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	asked, err := readControls(request.Header)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	if err := key.Limits.CheckOverrides(asked.overrides); err != nil {
		return s.refuse(c, codec, event, err)
	}
	layer, err := asked.layer()
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	config, sources, err := s.Settings.Config(request.Context(), key, layer)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	return c.JSON(http.StatusOK, struct {
		Pipeline pipeline.Config  `json:"pipeline"`
		Sources  pipeline.Sources `json:"sources"`
	}{config, sources})
}

// mcpPath is the path of the MCP server for the archive.
const mcpPath = "/mcp"

// errNoRecall says that an API key may not read the archive.
var errNoRecall = fmt.Errorf("%w recall", tenants.ErrScopeMissing)

// recall serves the MCP server to anyone with an API key of the workspace for the proxy or for recall. They
// find and read whatever the people behind the key may. The header X-Palimpsest-Session-Id limits it to a
// session, X-Palimpsest-User to the sessions of an end user.
func (s *Server) recall(c echo.Context) error {
	request := c.Request()
	event := s.begin(request, mcpPath)
	key, err := s.keyWith(request.Context(), request, event, errNoRecall, tenants.ScopeRecall, tenants.ScopeProxy)
	if err != nil {
		return s.refuseRecall(c, event, err)
	}
	asked, err := readControls(request.Header)
	if err != nil {
		return s.refuseRecall(c, event, err)
	}
	s.Recall.Serve(c.Response(), request, recall.Caller{
		Key: key, Session: asked.session, EndUser: session.EndUserID(key.Workspace, asked.endUser),
	})
	return nil
}

// refuseRecall answers with one of our errors and logs it.
func (s *Server) refuseRecall(c echo.Context, event *RequestLog, err error) error {
	if status := problem(err).Status; status == http.StatusUnauthorized {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
	}
	refused := s.refuse(c, formats.Default(), event, err)
	caller := recall.Caller{Key: tenants.APIKey{Workspace: event.from.Workspace, ID: event.from.APIKey, Prefix: event.from.KeyPrefix}}
	s.Recalled(c.Request().Context(), recall.Call{Caller: caller, Outcome: "refused", Err: err})
	return refused
}

// Recalled counts a call of the archive's tools and writes it to the log, without its query and its results.
func (s *Server) Recalled(ctx context.Context, call recall.Call) {
	s.Metrics.service.recalls.WithLabelValues(call.Tool, call.Outcome).Inc()
	if call.Tool != "" {
		s.Metrics.service.recalling.WithLabelValues(call.Tool).Observe(call.Duration.Seconds())
	}
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("tool", call.Tool), slog.String("outcome", call.Outcome),
		slog.String("workspace", call.Caller.Key.Workspace.String()), slog.String("key", call.Caller.Key.Prefix),
		slog.Int("hits", call.Hits), slog.Int("bytes", call.Bytes), slog.Duration("duration", call.Duration),
	}
	if call.Err != nil {
		attributes = append(attributes, slog.String("error", call.Err.Error()))
		if call.Outcome == "failed" {
			level = slog.LevelError
		}
	}
	s.Log.LogAttrs(ctx, level, "recall", attributes...)
}

// retryCrowded is the Retry-After value, in seconds, for a workspace with too many requests.
const retryCrowded = "1"

// errCrowded says that a workspace has too many requests open.
var errCrowded = errors.New("workspace has too many requests at once")

// Concurrency bounds how many requests, streams among them, each workspace has open
// in this process, so that one cannot take the connections and the memory of the
// others.
type Concurrency struct {
	limit int

	mu   sync.Mutex
	open map[tenants.WorkspaceID]int
}

// NewConcurrency returns a Concurrency with a limit per workspace.
func NewConcurrency(limit int) *Concurrency {
	return &Concurrency{limit: limit, open: make(map[tenants.WorkspaceID]int)}
}

// enter counts a request of a workspace until the caller calls leave, once; or it returns errCrowded.
func (c *Concurrency) enter(workspace tenants.WorkspaceID) (leave func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[workspace] >= c.limit {
		return nil, errCrowded
	}
	c.open[workspace]++
	return func() { c.leave(workspace) }, nil
}

func (c *Concurrency) leave(workspace tenants.WorkspaceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[workspace]--; c.open[workspace] == 0 {
		delete(c.open, workspace)
	}
}
