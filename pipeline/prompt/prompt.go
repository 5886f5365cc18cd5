// Package prompt turns the body a client sent into the body that goes to the
// provider: it reads the conversation, finds its lane, takes it through the
// modules and seals it again. The proxy and the offline replay share it.
package prompt

import (
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

// resolveTimeout bounds how long it may take to find a lane, for the store and for
// other requests that hold it. A prompt goes out without one rather than late.
const resolveTimeout = 5 * time.Second

// Chain runs the modules of an exchange's config. It never fails: what went
// wrong is in the exchange's report.
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
	Window      int       // context window in place of every model's; 0: the models'
	PlanLater   PlanLater // nil if nothing is planned ahead
	Now         func() time.Time

	// Lives returns how many messages subagents of a client had at their ends in a workspace, in order. It asks
	// nothing and waits for nothing. Optional.
	Lives func(workspace tenants.WorkspaceID, client string) []int

	// Redactor returns what redacts what is stored of a workspace's requests, nil for one whose
	// requests are stored as they came. It is nil if all are.
	Redactor func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Redact, error)
}

// NewWriter returns a Writer on a store that knows nothing yet. counter counts
// what its Reader reads.
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

// Destination is who is asked.
type Destination struct {
	Provider string // empty: the maker of the model
	Region   string // in which it processes what it is sent, if its address says so

	Key uuid.UUID // provider key whose account has the cache; uuid.Nil if it is not stored
}

// Request is a client's request as far as its prompt is concerned.
type Request struct {
	Scope   session.Scope
	Codec   wire.Codec
	Config  pipeline.Config
	Headers http.Header // what they say about session and client counts
	Path    string      // without the query
	Body    []byte
	Bypass  bool // leave the prompt as it is
	DryRun  bool // only say what the pipeline would do
	NoStore bool // leave the prompt as it is, and keep nothing of it
	Long    bool // the client asks for the model's long context window

	Destination Destination

	// Overrides are what holds in place of what the catalog says of models.
	Overrides tokens.Overrides

	// Usage has a stream report its usage where the client did not ask for it.
	Usage bool

	// Memory returns so many bytes for the prompt's body where that is not the client's;
	// made if nil.
	Memory func(size int) []byte

	// Allow refuses a model, with the name that it is asked for by, before anything
	// is done for the request; nil: every model is allowed.
	Allow func(model tokens.Model, asked string) error
}

// BodyError is a body that cannot be read. Its message is for the person who sent it.
type BodyError struct{ Cause error }

// Error implements error.
func (e BodyError) Error() string { return e.Cause.Error() }

// Unwrap returns what is wrong with the body.
func (e BodyError) Unwrap() error { return e.Cause }

// Prompt is a request that is ready to be sent.
type Prompt struct {
	Body     []byte // what goes to the provider
	Beta     string // value that the anthropic-beta header needs beside the client's; empty if none
	Exchange *pipeline.Exchange
	Lane     *session.Lane // nil: the store failed; nothing is recorded of the session

	// AsksUsage says that the stream will report a usage that the client did not
	// ask for and must not see.
	AsksUsage bool

	// Trial is the report of what the pipeline would have done in a dry run; nil
	// if it was none.
	Trial *pipeline.Report

	Archival

	now        func() time.Time // nil if it is not to be sent
	plansAhead bool
	marked     string // time to live of our cache marker; empty if none
	released   string // how its thinking is released from its binding; empty if it is not
	account    account
	fresh      []session.Insert // that it is the first to hold
	earlier    earlier
}

// Archival is what the archive was given for a prompt.
type Archival struct {
	Archiving time.Duration  // time until the originals and what changed the prompt were durable
	Archived  int            // bytes of originals
	Redacted  map[string]int // pieces of personal data that were replaced in them, by kind; nil if none were
}

// earlier is what is known of the prompts that a prompt's lane had before it.
type earlier struct {
	met      int                 // messages that an earlier request of the session had
	heat     session.CacheState  // what the lane knew of the provider's cache
	standing *session.Projection // the lane's before the modules ran; nil if none
	omits    bool                // earlier prompts had inserts that this one leaves out
	isLost   bool                // the lane could not be looked for: what earlier prompts had is not known
}

// ErrResumes says that a request goes on with a history that the provider holds for
// minutes. Of a prompt that is nowhere whole nothing can be shortened or found again, so the
// client is told that its thread is gone: it has the whole history, and sends it.
var ErrResumes = errors.New("the request holds a part of its conversation")

// Write writes the prompt of a request. A failure inside Palimpsest leaves the
// prompt as it was; only what the sender has to mend is an error: a BodyError, ErrResumes, or what
// Allow says.
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
	prompt.now, prompt.plansAhead = w.Now, w.PlanLater != nil && !exchange.Redacts() // a plan is made of the client's own bytes
	hint := client.Hint(request.Headers, exchange.Request)
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

// take reads a request whose model is allowed.
func (w *Writer) take(ctx context.Context, request Request) (prompt *Prompt, err error) {
	_, span := spans.Start(ctx, "parse body")
	defer span.EndWith(&err)
	if prompt, err = w.read(request); err != nil {
		return nil, BodyError{Cause: err}
	}
	span.Int(spans.Messages, len(prompt.Exchange.Digests))
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

// read understands a body as far as the pipeline needs it.
func (w *Writer) read(request Request) (*Prompt, error) {
	envelope, digests, err := w.Reader.Read(request.Codec, request.Body)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	asked, err := request.Codec.Request(envelope)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if request.Scope.EndUser == "" { // no header says it
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

// unsaid estimates the o200k tokens that a provider puts before a prompt by itself.
func unsaid(codec wire.Codec, body *wire.Envelope) int {
	if tools, has := body.Member("tools"); has && codec.Traits().InstructsTools && wire.HasElements(tools) {
		return tokens.ToolInstructions
	}
	return 0
}

// provided returns what holds for the model that a request names, at the provider that
// is asked for it: sizes are learned of each provider by itself.
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

// within returns how many tokens a prompt may have of which the provider takes so many, if a person
// has set a ceiling. Either is 0 if it is not known. The room for the answer is the provider's to
// leave: what a person sets is for the prompt alone.
func within(takes, ceiling int) int {
	if takes == 0 || ceiling > 0 && ceiling < takes {
		return ceiling
	}
	return takes
}

// project finds the request's lane and decides its projection; in a dry run it
// keeps the one that stands.
func (w *Writer) project(ctx context.Context, prompt *Prompt, hint session.Hint, dryRun bool) {
	exchange := prompt.Exchange
	hint.Kind = laneKind(exchange.Class)
	exchange.Digests, exchange.Chain = w.Resolver.Follow(ctx, exchange.Scope, hint, exchange.Digests, exchange.Message)
	prompt.earlier.isLost = true
	lane, met, err := w.find(ctx, exchange, hint)
	prompt.earlier.isLost = err != nil
	if err != nil {
		size := exchange.Size(nil)
		exchange.Report = pipeline.Report{
			Compression: pipeline.None, Before: size, After: size, Limit: exchange.Limit, Takes: exchange.Takes,
			Events: []pipeline.ReportEntry{{Module: "session", Type: "failed", Reason: err.Error()}},
		}
		return
	}
	defer lane.Unlock()
	if met == 0 {
		if carried, is := client.CarriedFrom(len(exchange.Digests), exchange.Message); is {
			lane.ContinueFrom(carried.Thread)
		}
	}
	w.Resolver.Remember(exchange.Digests, exchange.Chain, exchange.Message)
	prompt.Lane, prompt.earlier.met, prompt.earlier.heat, exchange.Met = lane, met, lane.Heat(), met
	exchange.Session = lane.Session
	if hint.Name == "" {
		exchange.Line = lane.ID
	}
	w.settle(exchange, hint, lane, met)
	exchange.Anchor = lane.LastAnchor(exchange.Request.Model)
	exchange.NextProjection = lane.NextNumber()
	exchange.Pins, exchange.Order = lane.Pins(), lane.Order()
	exchange.Now, exchange.Heat, exchange.Plan = w.Now(), lane.Heat(), lane.Plan()
	exchange.Attempts = lane.Attempts()
	if w.Lives != nil && lane.Kind == session.Subagent {
		exchange.Lives = w.Lives(exchange.Scope.Workspace, exchange.Class.Client)
	}
	if exchange.Request.ReadOnly == "" {
		exchange.Projection = lane.Projection(exchange.Chain)
		exchange.Summary = lane.Summary(exchange.Chain)
		exchange.TakeOver(lane.Inserts(exchange.Chain))
	} else {
		prompt.earlier.omits = len(lane.Inserts(exchange.Chain)) > 0
	}
	prompt.earlier.standing = exchange.Projection
	switch {
	case exchange.Request.Repeats:
		exchange.Report = exchange.Standing()
	case dryRun:
		prompt.Trial = w.rehearse(ctx, *exchange)
		exchange.Report = exchange.Standing()
	default:
		exchange.Committer = committer{writer: w, prompt: prompt}
		w.process(ctx, exchange)
		w.keepInserts(ctx, prompt)
	}
	w.warn(prompt)
	noteCompaction(exchange)
	for _, reason := range lane.TakeRejected() {
		exchange.Report.Events = append(exchange.Report.Events, pipeline.ReportEntry{Module: "summary", Type: "summary_rejected", Reason: reason})
	}
}

// find finds the lane of a request, in so much time as a prompt may wait for it.
func (w *Writer) find(ctx context.Context, exchange *pipeline.Exchange, hint session.Hint) (lane *session.Lane, met int, err error) {
	ctx, span := spans.Start(ctx, "find lane")
	defer span.EndWith(&err)
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	return w.Resolver.Resolve(ctx, exchange.Scope, hint, exchange.Digests, exchange.Chain)
}

// process takes a request through the modules.
func (w *Writer) process(ctx context.Context, exchange *pipeline.Exchange) {
	ctx, span := spans.Start(ctx, "pipeline")
	defer span.End()
	w.Chain.Process(ctx, exchange)
	span.String(spans.Compression, string(exchange.Report.Compression))
	span.Int(spans.TokensBefore, exchange.Report.Before)
	span.Int(spans.TokensAfter, exchange.Report.After)
}

// committer keeps for a prompt's lane what its modules decide.
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
		if errors.Is(err, session.ErrOvertaken) || errors.Is(err, session.ErrWarm) {
			w.Resolver.Forget(prompt.Lane.ID)
		}
		return fmt.Errorf("commit epoch: %w", err)
	}
	prompt.Archived = update.Bytes()
	prompt.Lane.Adopt(projection)
	prompt.Lane.Arrived(0, len(prompt.Exchange.Digests))
	w.Resolver.Committed(prompt.Lane)
	return nil
}
