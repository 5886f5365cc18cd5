// Package replay runs a recorded conversation through the pipeline as its client would have sent
// it, request by request, without a provider: the prompts are real, the provider's usage and its
// prompt cache are modeled.
package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// Config configures a replay.
type Config struct {
	Format   conversation.Format
	Pipeline pipeline.Config
	Window   int // context window in tokens; 0 means the model's

	// Clock returns the time of each request, counted from 0; nil means the time of the replay.
	// Times must not go back.
	Clock func(request int) time.Time

	// TTL is how long the provider's cache keeps its entries; 0 means forever. Entries kept for an
	// hour are reported, and priced, as such.
	TTL time.Duration

	// Automatic means that the provider caches automatically, and reports cache writes as plain
	// input.
	Automatic bool

	// Models replace models of the table.
	Models []tokens.Model

	// Validate returns the provider's complaint about a body, if it has one; nil disables the
	// check.
	Validate func(format conversation.Format, body []byte) error
}

// Step is one exchange of a replay.
type Step struct {
	Number         int     `json:"number"`
	Messages       int     `json:"messages"`
	Before         int     `json:"before"` // estimate of the prompt in tokens as the client sent it
	After          int     `json:"after"`  // and as compressed
	Compression    string  `json:"compression"`
	Levels         [4]int  `json:"levels"` // turns at L0 to L3
	Epochs         int     `json:"epochs"` // so far
	Shared         float64 `json:"shared"` // share of the prompt's tokens in common with the beginning of the previous one
	Bust           bool    `json:"bust"`   // the previous prompt is not a prefix of this one
	CostMicroUSD   int64   `json:"cost_microusd"`
	DirectMicroUSD int64   `json:"direct_microusd"` // without the proxy, if the window were large enough
	Invalid        string  `json:"invalid,omitempty"`

	Certificate session.Certificate `json:"certificate,omitempty"` // of a compaction

	Sent Sent `json:"-"`
}

// Sent is the request of a step of a replay, and the pipeline's work for it.
type Sent struct {
	Body       []byte              // the request to the provider
	Lane       *session.Lane       // nil if unresolved
	Projection *session.Projection // replaces the first messages; nil leaves them unchanged
	Report     pipeline.Report
	Use        Use           // of the provider's cache, in o200k tokens
	Elapsed    time.Duration // until the body was ready
}

// Sum is the total of a replay.
type Sum struct {
	Exchanges      int   `json:"exchanges"`
	Epochs         int   `json:"epochs"`
	Busts          int   `json:"busts"`
	Invalid        int   `json:"invalid"`
	Window         int   `json:"window"`
	CostMicroUSD   int64 `json:"cost_microusd"`
	DirectMicroUSD int64 `json:"direct_microusd"`
}

// Difference returns the cost relative to no proxy, in percent.
func (s *Sum) Difference() float64 {
	if s.DirectMicroUSD == 0 {
		return 0
	}
	return 100 * (float64(s.CostMicroUSD)/float64(s.DirectMicroUSD) - 1)
}

// Replay replays conversations of one format.
type Replay struct {
	config Config
	codec  wire.Codec
	writer *prompt.Writer
	store  *session.Memory
	scope  session.Scope
}

// New returns a Replay.
func New(config Config) (*Replay, error) {
	codec, err := codecOf(config.Format)
	if err != nil {
		return nil, err
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, fmt.Errorf("token counter: %w", err)
	}
	store := session.NewMemory()
	writer, err := prompt.NewWriter(store, counter, pipeline.NewChain(modules.All(counter, modules.Memory{Past: compactionbridge.Past{Lanes: store, Originals: session.MemoryArchive{Memory: store}}})...))
	if err != nil {
		return nil, fmt.Errorf("writer: %w", err)
	}
	if writer.Models, err = tokens.NewModels(config.Models...); err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	writer.Window = config.Window
	if config.Clock == nil {
		config.Clock = func(int) time.Time { return time.Now() }
	}
	return &Replay{
		config: config, codec: codec, store: store, writer: writer,
		scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: config.Format},
	}, nil
}

// Run replays one body: it sends each prefix of its conversation before an answer of the model as a
// request. It calls each for every exchange.
func (r *Replay) Run(ctx context.Context, body []byte, each func(Step) error) (Sum, error) {
	envelope, digests, err := r.writer.Reader.Read(r.codec, body)
	if err != nil {
		return Sum{}, fmt.Errorf("read body: %w", err)
	}
	var sum Sum
	caches := caches{sent: Cache{TTL: r.config.TTL}, direct: Cache{TTL: r.config.TTL}}
	headers := http.Header{"X-Palimpsest-Session-Id": {uuid.NewString()}}
	for number, length := range Ends(digests) {
		caches.now = r.config.Clock(number)
		r.writer.Now = func() time.Time { return caches.now }
		step, usage, err := r.step(ctx, envelope.Seal([]wire.Piece{{From: 0, To: length}}), headers, &caches)
		if err != nil {
			return sum, fmt.Errorf("request of %d messages: %w", length, err)
		}
		r.writer.Answered(usage.sent, usage.answer())
		sum.add(&step)
		if err := each(step); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// Originals returns the originals that the replay has made durable for a lane.
func (r *Replay) Originals(lane uuid.UUID) map[int][]byte {
	originals := map[int][]byte{}
	for index, entry := range r.store.Originals(lane) {
		originals[index] = entry.Raw
	}
	return originals
}

// answered is the report of a modeled provider.
type answered struct {
	sent  prompt.Sent
	usage wire.Usage
}

func (a *answered) answer() wire.Answer { return wire.Answer{Usage: a.usage} }

// caches are the provider's, with the proxy and without, at a time.
type caches struct {
	now          time.Time
	sent, direct Cache
}

func (r *Replay) step(ctx context.Context, body []byte, headers http.Header, caches *caches) (Step, answered, error) {
	began := time.Now()
	written, err := r.writer.Write(ctx, prompt.Request{
		Scope: r.scope, Codec: r.codec, Config: r.config.Pipeline, Body: body,
		Headers: headers,
	})
	if err != nil {
		return Step{}, answered{}, err
	}
	elapsed := time.Since(began)
	prompt, err := r.pieces(written.Body)
	if err != nil {
		return Step{}, answered{}, err
	}
	original, err := r.pieces(body)
	if err != nil {
		return Step{}, answered{}, err
	}
	use, without := caches.sent.Send(caches.now, prompt), caches.direct.Send(caches.now, original)
	exchange := written.Exchange
	price := exchange.Model.Price
	step := Step{
		Messages: len(exchange.Conversation.Digests), Before: exchange.Report.Before, After: exchange.Report.After,
		Compression: string(exchange.Report.Compression), Levels: exchange.Report.Levels,
		Shared: use.share(), Bust: use.Bust,
		CostMicroUSD:   r.config.cost(use, price),
		DirectMicroUSD: r.config.cost(without, price),
		Sent: Sent{
			Body: written.Body, Lane: written.Lane, Projection: exchange.Lane.Projection, Report: exchange.Report, Use: use,
			Elapsed: elapsed,
		},
	}
	if exchange.Report.Archived > 0 && exchange.Lane.Projection != nil {
		step.Certificate = exchange.Lane.Projection.Certificate
	}
	if r.config.Validate != nil {
		if err := r.config.Validate(r.config.Format, written.Body); err != nil {
			step.Invalid = err.Error()
		}
	}
	return step, answered{sent: written.Sent(), usage: r.config.usage(use, exchange.Model.TokensPerO200k)}, nil
}

// pieces splits a body into the pieces of a provider's cache.
func (r *Replay) pieces(body []byte) ([]Piece, error) {
	envelope, digests, err := r.writer.Reader.Read(r.codec, body)
	if err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	request, err := r.codec.Request(envelope)
	if err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	pieces := make([]Piece, 1, len(digests)+1)
	pieces[0] = Piece{Sum: sha256.Sum256(bytes.Join(rawBytes(request.Fixed), nil)), Tokens: r.writer.Reader.Fixed(r.codec.Format(), request.Fixed)}
	for i, digest := range digests {
		sum := digest.Sum
		if digest.Markers > 0 {
			sum = sha256.Sum256(r.codec.Mark(envelope.Element(i), "")) // a moved cache marker is not a change
		}
		pieces = append(pieces, Piece{Sum: sum, Tokens: digest.Tokens})
	}
	return pieces, nil
}

func rawBytes(parts []json.RawMessage) [][]byte {
	raw := make([][]byte, len(parts))
	for i, part := range parts {
		raw[i] = part
	}
	return raw
}

// Ends returns the lengths of those prefixes of a conversation that are requests: the model's
// answer is next. A system message after a message of the user belongs to that request.
func Ends(messages []conversation.Digest) []int {
	starts := make(map[int]bool)
	for _, turn := range conversation.Turns(messages) {
		starts[turn.From] = true
	}
	var ends []int
	lead := conversation.Lead(messages)
	for i, message := range messages {
		if message.Role == conversation.Assistant || i < lead {
			continue
		}
		next := i + 1
		if next < len(messages) && messages[next].Role != conversation.Assistant {
			continue
		}
		// Responses may put a call's output before the next call of the same answer.
		if next < len(messages) && message.Flags.Has(conversation.HasResult) && !starts[next] {
			continue
		}
		ends = append(ends, next)
	}
	return ends
}

// Detect returns the format of a body by its members; "" if unknown.
func Detect(body []byte) conversation.Format {
	codec, known := formats.Recognize(body)
	if !known {
		return ""
	}
	return codec.Format()
}

func (s *Sum) add(step *Step) {
	s.Exchanges++
	step.Number = s.Exchanges
	if step.Sent.Report.Archived > 0 {
		s.Epochs++
	}
	step.Epochs = s.Epochs
	if step.Bust {
		s.Busts++
	}
	if step.Invalid != "" {
		s.Invalid++
	}
	s.Window = step.Sent.Report.Limit
	s.CostMicroUSD += step.CostMicroUSD
	s.DirectMicroUSD += step.DirectMicroUSD
}

func codecOf(format conversation.Format) (wire.Codec, error) {
	codec, known := formats.Of(format)
	if !known {
		return nil, errors.New("format: must be anthropic, openai-chat, openai-responses or gemini")
	}
	return codec, nil
}

func scale(tokens int, factor float64) int { return int(float64(tokens) * factor) }
