package pipelinetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// Options describe an exchange and its lane.
type Options struct {
	Counter    session.Counter
	Config     pipeline.Config
	Limit      int                 // tokens the prompt may have; 0 if the model is unknown
	Factor     float64             // the model's tokens per o200k token; 0 means 1
	Projection *session.Projection // the lane's current one; nil if absent
	Anchor     session.Anchor
	Pins       []int          // messages whose turns stay unchanged
	Pinned     bool           // the whole session is pinned
	Order      *session.Order // user request for the next epoch; nil if absent

	Inserts []session.Insert   // in the lane
	Heat    session.CacheState // the lane's last prompt that was sent
	Class   client.Class       // the request's role for its client

	// Known holds digests by the messages' bytes; nil reads every message.
	Known map[string]conversation.Digest

	// Commit is called for a new projection; nil accepts it.
	Commit func(context.Context, session.Projection) error
}

// NewExchange returns the exchange of a body in the form that the proxy creates.
func NewExchange(t testing.TB, codec wire.Codec, body []byte, options Options) *pipeline.Exchange {
	t.Helper()

	exchange, err := ReadExchange(codec, body, options)
	if err != nil {
		t.Fatal(err)
	}
	return exchange
}

// ReadExchange is NewExchange for use outside tests.
func ReadExchange(codec wire.Codec, body []byte, options Options) (*pipeline.Exchange, error) {
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		return nil, fmt.Errorf("open body: %w", err)
	}
	request, err := codec.Request(envelope)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	digests := make([]conversation.Digest, envelope.Len())
	for i := range digests {
		if digests[i], err = options.digest(codec, envelope.Element(i)); err != nil {
			return nil, err
		}
	}
	scope := session.Scope{Format: codec.Format()}
	exchange := &pipeline.Exchange{
		Codec: codec, Body: envelope,
		View: pipeline.View{
			ID: uuid.New(), Scope: scope, Config: options.Config, Request: request, Class: options.Class,
			Conversation: pipeline.NewConversation(codec, envelope, digests),
			Limits:       pipeline.Limits{Limit: options.Limit, Factor: options.Factor},
			Lane: pipeline.Lane{
				Place:      pipeline.Place{Pinned: options.Pinned},
				Projection: options.Projection, Anchor: options.Anchor, Pins: options.Pins, Order: options.Order,
				Inserts: options.Inserts, Heat: options.Heat,
			},
			CountText: options.countText, Committer: Committer{OnCommit: options.Commit},
		},
	}
	exchange.Conversation.Chain = session.Chain(scope, session.Hint{}, digests)
	for _, part := range request.Fixed {
		exchange.Limits.Fixed += options.Counter.Fixed(part)
	}
	if exchange.Limits.Factor == 0 {
		exchange.Limits.Factor = 1
	}
	exchange.Report = exchange.Standing()
	return exchange, nil
}

// countText counts a text as a separate message.
func (o Options) countText(text string) int {
	return o.Counter.Message(conversation.UserText(text))
}

// Committer is a pipeline.Committer that calls its functions, if set.
type Committer struct {
	OnCommit func(context.Context, session.Projection) error
	OnTried  func(session.Attempts)
}

// Commit implements pipeline.Committer.
func (k Committer) Commit(ctx context.Context, projection session.Projection) error {
	if k.OnCommit == nil {
		return nil
	}
	return k.OnCommit(ctx, projection)
}

// Tried implements pipeline.Committer.
func (k Committer) Tried(attempts session.Attempts) {
	if k.OnTried != nil {
		k.OnTried(attempts)
	}
}

// digest returns the digest of a message.
func (o Options) digest(codec wire.Codec, raw []byte) (conversation.Digest, error) {
	if digest, known := o.Known[string(raw)]; known {
		return digest, nil
	}
	digest, err := wire.Digest(codec, raw, o.Counter.Message)
	if err != nil {
		return conversation.Digest{}, fmt.Errorf("digest %s: %w", raw, err)
	}
	if o.Known != nil {
		o.Known[string(raw)] = digest
	}
	return digest, nil
}

// Process makes a module work on an exchange and applies its draft.
func Process(ctx context.Context, module pipeline.Module, exchange *pipeline.Exchange) error {
	draft, err := module.Process(ctx, &exchange.View)
	exchange.Take(draft)
	return err //nolint:wrapcheck // the module's own
}

// Seal returns the body that would go to the provider.
func Seal(exchange *pipeline.Exchange) []byte {
	pieces, members := exchange.WithInserts(exchange.Pieces())
	return exchange.Body.Seal(pieces, members...)
}

// Lane lets one conversation grow. It keeps its projections between requests, as a session does.
type Lane struct {
	Codec   wire.Codec
	Options Options
	Modules []pipeline.Module
	Epochs  int // projections so far

	// Prepare changes an exchange before the modules see it; optional.
	Prepare func(*pipeline.Exchange)

	projections []session.Projection
}

// patience is how long a module may take in a test, so that a slow machine does not change the result.
const patience = 10 * time.Minute

// Send runs the modules on the next request of the lane. It returns the exchange and the body that would go
// to the provider.
func (l *Lane) Send(t testing.TB, body []byte) (*pipeline.Exchange, []byte) {
	t.Helper()

	if l.Options.Known == nil {
		l.Options.Known = map[string]conversation.Digest{}
	}
	options := l.Options
	options.Commit = func(ctx context.Context, projection session.Projection) error {
		if l.Options.Commit != nil {
			if err := l.Options.Commit(ctx, projection); err != nil {
				return err
			}
		}
		l.projections = append(l.projections, projection)
		l.Epochs++
		return nil
	}
	exchange := NewExchange(t, l.Codec, body, options)
	for i := len(l.projections) - 1; i >= 0 && exchange.Lane.Projection == nil; i-- {
		projection := &l.projections[i]
		if projection.Covers < len(exchange.Conversation.Chain) && exchange.Conversation.Chain[projection.Covers] == projection.Chain {
			exchange.Lane.Projection = projection
		}
	}
	exchange.Lane.NextProjection = len(l.projections) + 1
	if l.Prepare != nil {
		l.Prepare(exchange)
	}
	pipeline.NewChain(l.Modules...).WithDeadline(patience).Process(t.Context(), exchange)
	return exchange, Seal(exchange)
}
