// Package prompt turns the body a client sent into the body that goes to the
// provider: it reads the conversation, finds its lane, takes it through the
// modules and seals it again. The proxy and the offline replay share it.
package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// resolveTimeout bounds the search for a lane, including waiting for the store and for other requests that
// hold the lane. After it, the prompt goes out without a lane, so that it isn't late.
const resolveTimeout = 5 * time.Second

// mostRestarts bounds how often a prompt starts again because other processes have changed its lane.
const mostRestarts = 2

// Chain runs the modules of an exchange's config. It never fails: the exchange's report has the errors.
type Chain interface {
	Process(ctx context.Context, exchange *pipeline.Exchange)
}

// Writer writes prompts.
type Writer struct {
	Reader      *session.Reader
	Resolver    *session.Resolver
	Store       session.Store
	Chain       Chain
	Models      *tokens.Models
	Calibration *tokens.Calibration
	Tracker     *cost.Tracker
	Window      int       // replaces the context window of every model; 0 means the models' own
	PlanLater   PlanLater // nil disables planning ahead
	Now         func() time.Time

	// Lives returns the lengths, in messages, that a client's subagents ended with in a workspace, sorted. It
	// answers from memory without blocking. Optional.
	Lives func(workspace tenants.WorkspaceID, client string) []int

	// Redactor returns the redaction of a workspace's stored requests. A nil Redact, or a nil Redactor, means
	// that requests are stored unchanged.
	Redactor func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Redact, error)
}

// NewWriter returns a Writer on a store without earlier state. counter counts the tokens that its Reader
// reads.
func NewWriter(store session.Store, counter session.Counter, chain Chain) (*Writer, error) {
	models, err := tokens.NewModels()
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	reader, err := session.NewReader(counter)
	if err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	resolver, err := session.NewResolver(store)
	if err != nil {
		return nil, fmt.Errorf("resolver: %w", err)
	}
	tracker, err := cost.NewTracker()
	if err != nil {
		return nil, fmt.Errorf("book: %w", err)
	}
	return &Writer{
		Reader: reader, Resolver: resolver, Store: store, Chain: chain,
		Models: models, Calibration: tokens.NewCalibration(), Tracker: tracker, Now: time.Now,
	}, nil
}

// Destination is the provider that a request goes to.
type Destination struct {
	Provider string // "" means the maker of the model
	Region   string // processing region, if the provider's address names it

	Key uuid.UUID // provider key whose account has the cache; uuid.Nil if the key is not stored
}

// Request is a client's request with the inputs of its prompt.
type Request struct {
	Scope   session.Scope
	Codec   wire.Codec
	Config  pipeline.Config
	Headers http.Header // only headers about session and client are read
	Path    string      // without the query
	Body    []byte
	Bypass  bool // leave the prompt unchanged
	DryRun  bool // only report the pipeline's effect
	NoStore bool // leave the prompt unchanged and store nothing of it
	Long    bool // the client asks for the model's long context window

	Destination Destination

	// Overrides replace the catalog's data on models.
	Overrides tokens.Overrides

	// Usage adds a usage report to a stream even if the client did not ask for it.
	Usage bool

	// Memory returns size bytes for a rewritten body. The body is allocated if Memory is nil.
	Memory func(size int) []byte

	// Allow refuses a model, asked for under a name, before any work is done for the request. nil allows
	// every model.
	Allow func(model tokens.Model, asked string) error
}

// BodyError is a body that cannot be read. Its message is for the person who sent it.
type BodyError struct{ Cause error }

// Error implements error.
func (e BodyError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e BodyError) Unwrap() error { return e.Cause }

// Prompt is a request ready to be sent.
type Prompt struct {
	Body     []byte // body for the provider
	Beta     string // addition to the client's anthropic-beta header; "" if absent
	Exchange *pipeline.Exchange
	Lane     *session.Lane // nil after a store failure, in which case nothing is recorded of the session

	// AsksUsage says that the stream reports a usage that the client did not ask for and must not see.
	AsksUsage bool

	// Trial is the report of a dry run: the pipeline's effect if it were applied. nil unless it was a dry
	// run.
	Trial *pipeline.Report

	Archival

	now        func() time.Time // nil if the prompt will not be sent
	plansAhead bool
	marked     string // lifetime of our cache marker; "" if absent
	released   string // name of the release of its thinking; "" if not released
	account    account
	fresh      []session.Insert // inserts that this prompt is the first to hold
	earlier    earlier
	hint       session.Hint
}

// Archival describes the data that the archive received for a prompt.
type Archival struct {
	Archiving time.Duration  // time until the originals and the prompt's changes were durable
	Archived  int            // bytes of originals
	Redacted  map[string]int // pieces of personal data replaced in them, by kind; nil if none
}

// earlier holds the known state of the lane's prompts before this one.
type earlier struct {
	met      int                 // messages that an earlier request of the session already had
	heat     session.CacheState  // the lane's knowledge of the provider's cache
	standing *session.Projection // the lane's projection before the modules ran; nil if none
	omits    bool                // earlier prompts had inserts that this one leaves out
	isLost   bool                // the lane could not be looked up, so its earlier prompts are unknown
	isBehind bool                // another process was first to compact the lane, so nothing was stored
}

// ErrResumes says that a request continues a history that only the provider holds, for minutes. Palimpsest
// can't compress or find such a partial prompt, so the client receives an error that its thread is gone. It
// has the whole history and sends it.
var ErrResumes = errors.New("the request holds a part of its conversation")

// Write writes the prompt of a request. A failure inside Palimpsest leaves the prompt unchanged. It returns
// an error only if the sender must fix the request: a BodyError, ErrResumes, or an error from Allow.
func (w *Writer) Write(ctx context.Context, request Request) (*Prompt, error) {
	prompt, err := w.take(ctx, request)
	if err != nil {
		return nil, err
	}
	exchange := prompt.Exchange
	switch {
	case request.Bypass, request.NoStore:
		exchange.Request.ReadOnly, exchange.Request.Holds = bypass, ""
	case exchange.Request.Resumes:
		return nil, ErrResumes
	}
	prompt.now, prompt.plansAhead = w.Now, w.PlanLater != nil && !exchange.Conversation.Redacts() // a plan uses the client's own bytes
	hint := client.Hint(request.Headers, exchange.Request)
	if previous := exchange.Request.Previous; previous != "" {
		hint = w.Resolver.Continue(exchange.Scope, hint, previous)
	}
	prompt.guarded(func() {
		if request.NoStore {
			w.glance(ctx, prompt, hint)
		} else {
			w.project(ctx, prompt, hint, request.DryRun)
		}
	})
	_, sealing := spans.Start(ctx, "seal body")
	prompt.seal(request.Usage, request.Memory)
	sealing.Int(spans.BodyBytes, len(prompt.Body))
	sealing.End()
	prompt.account = w.account(prompt)
	return prompt, nil
}

// take reads a request and checks that its model is allowed.
func (w *Writer) take(ctx context.Context, request Request) (prompt *Prompt, err error) {
	_, span := spans.Start(ctx, "parse body")
	defer span.EndWith(&err)
	if prompt, err = w.read(request); err != nil {
		return nil, BodyError{Cause: err}
	}
	span.Int(spans.Messages, len(prompt.Exchange.Conversation.Digests))
	if w.Redactor != nil {
		redact, err := w.Redactor(ctx, request.Scope.Workspace)
		if err != nil {
			return nil, fmt.Errorf("what redacts the request: %w", err)
		}
		if redact != nil {
			prompt.Exchange.KeepRedacted(redact)
		}
	}
	if request.Allow == nil {
		return prompt, nil
	}
	err = request.Allow(prompt.Exchange.Model, prompt.Exchange.Request.Model)
	for i, other := range prompt.account.others {
		err = errors.Join(err, request.Allow(other, prompt.account.billing.Models[i]))
	}
	if err != nil {
		return nil, err
	}
	return prompt, nil
}

// read parses the parts of a body that the pipeline needs.
func (w *Writer) read(request Request) (*Prompt, error) {
	envelope, digests, err := w.Reader.Read(request.Codec, request.Body)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if betas, has := envelope.Member("anthropic_beta"); has && bytes.Contains(betas, []byte(`"context-1m-`)) {
		request.Long = true // the client of a cloud names the feature in the body
	}
	asked, err := request.Codec.Request(envelope)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if request.Scope.EndUser == "" { // no header names one
		request.Scope.EndUser = session.EndUserID(request.Scope.Workspace, asked.EndUser)
	}
	fields := wire.NewFields(envelope)
	billing := fields.Billing()
	if err := fields.Err(); err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	billing.Beyond = billing.Beyond || asked.Refers || asked.Resumes
	billing.Fee = max(billing.Fee, int64(math.Round(w.Models.DearestToolUse()*1e6)))
	provided := w.provided(request, asked.Model)
	account := account{billing: billing, key: request.Destination.Key, region: request.Destination.Region, own: provided, isLong: request.Long, overrides: request.Overrides}
	for _, name := range billing.Models {
		account.others = append(account.others, w.provided(request, name))
	}
	model := provided
	model.Price = provided.On(account.terms(wire.Served{}))
	takes := model.InputLimit(asked.MaxOutput)
	exchange := &pipeline.Exchange{
		Codec: request.Codec, Body: envelope,
		View: pipeline.View{
			ID: uuid.Must(uuid.NewV7()), Scope: request.Scope, Config: request.Config, Request: asked,
			Class: client.Classify(request.Headers, request.Path, envelope), Model: model,
			Conversation: pipeline.NewConversation(request.Codec, envelope, digests),
			Limits: pipeline.Limits{
				Limit: within(takes, pipeline.SettingsOf[ipc.Config](request.Config).ContextWindow.Tokens()), Takes: takes,
				Factor: w.Calibration.Factor(request.Scope.Workspace, model),
				Fixed:  w.Reader.Fixed(request.Codec.Format(), asked.Fixed) + unsaid(request.Codec, envelope),
			},
			CountText: w.Reader.Text, Committer: pipeline.Forgetful{},
		},
	}
	exchange.KeepLarge()
	return &Prompt{Exchange: exchange, account: account}, nil
}

// unsaid estimates the o200k tokens that a provider adds before a prompt.
func unsaid(codec wire.Codec, body *wire.Envelope) int {
	if tools, has := body.Member("tools"); has && codec.Traits().InstructsTools && wire.HasElements(tools) {
		return tokens.ToolInstructions
	}
	return 0
}

// provided returns the data of the model that a request names, at the request's provider, because sizes are
// learned separately for each provider.
func (w *Writer) provided(request Request, name string) tokens.Model {
	model := w.Models.Lookup(name)
	if request.Destination.Provider != "" {
		model.Provider = request.Destination.Provider
	}
	if request.Long {
		model = model.WithLongWindow()
	}
	model = request.Overrides.On(model, name)
	if w.Window > 0 {
		model = model.WithWindow(w.Window)
	}
	return model
}

// within returns the prompt's limit in tokens: the smaller of the provider's limit and a configured ceiling.
// Either is 0 if unknown. The ceiling is for the prompt alone: the provider reserves room for the answer.
func within(takes, ceiling int) int {
	if takes == 0 || ceiling > 0 && ceiling < takes {
		return ceiling
	}
	return takes
}

// project finds the request's lane and decides its projection. In a dry run it keeps the current one. If
// another process was first to compact the lane, it starts again with the lane as stored: without that
// compaction, the prompt may be too long for the provider.
func (w *Writer) project(ctx context.Context, prompt *Prompt, hint session.Hint, dryRun bool) {
	exchange := prompt.Exchange
	hint.Kind = laneKind(exchange.Class)
	exchange.Conversation.Digests, exchange.Conversation.Chain = w.Resolver.Follow(ctx, exchange.Scope, hint, exchange.Conversation.Digests, exchange.Conversation.Message)
	prompt.hint = hint
	asRead := *exchange
	w.projectOnce(ctx, prompt, dryRun)
	for restarts := 0; prompt.earlier.isBehind && restarts < mostRestarts; restarts++ {
		*exchange, prompt.Lane = asRead, nil
		w.projectOnce(ctx, prompt, dryRun)
	}
}

// projectOnce is project without a second try.
func (w *Writer) projectOnce(ctx context.Context, prompt *Prompt, dryRun bool) {
	exchange, hint := prompt.Exchange, prompt.hint
	prompt.earlier = earlier{isLost: true}
	lane, met, err := w.find(ctx, exchange, hint)
	prompt.earlier.isLost = err != nil
	if err != nil {
		size := exchange.Size(nil)
		exchange.Report = pipeline.Report{
			Compression: pipeline.None, Before: size, After: size, Limit: exchange.Limits.Limit, Takes: exchange.Limits.Takes,
			Events: []pipeline.ReportEntry{{Module: "session", Type: "failed", Reason: err.Error()}},
		}
		return
	}
	defer lane.Unlock()
	if met == 0 {
		if carried, is := client.CarriedFrom(len(exchange.Conversation.Digests), exchange.Conversation.Message); is {
			lane.ContinueFrom(carried.Thread)
		}
	}
	w.Resolver.Remember(exchange.Conversation.Digests, exchange.Conversation.Chain, exchange.Conversation.Message)
	prompt.Lane, prompt.earlier.met, prompt.earlier.heat, exchange.Lane.Met = lane, met, lane.Heat(), met
	exchange.Lane.Session = lane.Session
	if hint.Name == "" {
		exchange.Lane.Line = lane.ID
	}
	w.settle(exchange, hint, lane, met)
	exchange.Lane.Anchor = lane.LastAnchor(exchange.Request.Model)
	exchange.Lane.NextProjection = lane.NextNumber()
	exchange.Lane.Pins, exchange.Lane.Pinned, exchange.Lane.Order = lane.Pins(), lane.Pinned(), lane.Order()
	exchange.Lane.Now, exchange.Lane.Heat, exchange.Lane.Plan = w.Now(), lane.Heat(), lane.Plan()
	exchange.Lane.Attempts = lane.Attempts()
	if w.Lives != nil && lane.Kind == session.Subagent {
		exchange.Lane.Lives = w.Lives(exchange.Scope.Workspace, exchange.Class.Client)
	}
	if exchange.Request.ReadOnly == "" {
		exchange.Lane.Projection = lane.Projection(exchange.Conversation.Chain)
		exchange.Lane.Summary = lane.Summary(exchange.Conversation.Chain)
		exchange.Lane.Inserts = lane.Inserts(exchange.Conversation.Chain)
	} else {
		prompt.earlier.omits = len(lane.Inserts(exchange.Conversation.Chain)) > 0
	}
	prompt.earlier.standing = exchange.Lane.Projection
	switch {
	case exchange.Request.Repeats:
		exchange.Report = exchange.Standing()
	case dryRun:
		prompt.Trial = rehearse(ctx, w.Chain, *exchange)
		exchange.Report = exchange.Standing()
	default:
		exchange.Committer = committer{writer: w, prompt: prompt}
		process(ctx, w.Chain, exchange)
		w.keepInserts(ctx, prompt)
	}
	w.warn(prompt)
	noteCompaction(exchange)
	for _, reason := range lane.TakeRejected() {
		exchange.Report.Events = append(exchange.Report.Events, pipeline.ReportEntry{Module: "summary", Type: "summary_rejected", Reason: reason})
	}
}

// find finds the lane of a request within resolveTimeout.
func (w *Writer) find(ctx context.Context, exchange *pipeline.Exchange, hint session.Hint) (lane *session.Lane, met int, err error) {
	ctx, span := spans.Start(ctx, "find lane")
	defer span.EndWith(&err)
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	return w.Resolver.Resolve(ctx, exchange.Scope, hint, exchange.Conversation.Digests, exchange.Conversation.Chain)
}

// process takes a request through the modules.
func process(ctx context.Context, chain Chain, exchange *pipeline.Exchange) {
	ctx, span := spans.Start(ctx, "pipeline")
	defer span.End()
	chain.Process(ctx, exchange)
	span.String(spans.Compression, string(exchange.Report.Compression))
	span.Int(spans.TokensBefore, exchange.Report.Before)
	span.Int(spans.TokensAfter, exchange.Report.After)
}

// committer stores the decisions of a prompt's modules in its lane.
type committer struct {
	writer *Writer
	prompt *Prompt
}

// Commit implements pipeline.Committer.
func (c committer) Commit(ctx context.Context, projection session.Projection) error {
	return c.writer.commit(ctx, c.prompt, projection)
}

// Tried implements pipeline.Committer.
func (c committer) Tried(attempts session.Attempts) { c.prompt.Lane.Tried(attempts) }

// commit makes the originals of the whole request and a new projection durable.
func (w *Writer) commit(ctx context.Context, prompt *Prompt, projection session.Projection) (err error) {
	ctx, span := spans.Start(ctx, "commit epoch")
	defer span.EndWith(&err)
	projection.At = w.Now()
	defer func() { prompt.Archiving = w.Now().Sub(projection.At) }()
	update := prompt.update(projection.At, prompt.Lane.Archived())
	if err := w.Store.Commit(ctx, update, projection); err != nil {
		if errors.Is(err, session.ErrOvertaken) || errors.Is(err, session.ErrWarm) || errors.Is(err, session.ErrPinned) {
			w.Resolver.Forget(prompt.Lane.ID)
		}
		prompt.earlier.isBehind = errors.Is(err, session.ErrOvertaken)
		return fmt.Errorf("commit epoch: %w", err)
	}
	prompt.Archived = update.Bytes()
	prompt.Lane.Adopt(projection)
	prompt.Lane.Arrived(0, len(prompt.Exchange.Conversation.Digests))
	w.Resolver.Committed(prompt.Lane)
	return nil
}
