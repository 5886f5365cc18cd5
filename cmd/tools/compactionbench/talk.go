package compactionbench

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/pipeline/wire/sessiontest"
)

// Talk is a session that policies are compared on.
type Talk struct {
	Name   string
	Format conversation.Format
	Window int    // context window in the model's tokens
	Body   []byte // of the last request

	// Directives and Modified are what the prompt should not lose: standing orders
	// and files that were changed. Nil if they are looked for in the messages.
	Directives, Modified []string
}

// The sizes of generated sessions, in the model's tokens.
const (
	headTokens  = 20_000
	turnTokens  = 2_000
	bigWindow   = 200_000
	smallWindow = 64_000
)

// Generated returns a session of so many turns of about 2,000 tokens behind a head
// of about 20,000, in a window of 200,000 tokens: edits, repeated reads, searches,
// test runs, failures, thinking, directives, and identifiers that are come back to.
func (b *Bench) Generated(seed uint64, format conversation.Format, turns int) Talk {
	return b.generate(fmt.Sprintf("%d turns", turns), seed, bigWindow, headTokens, sessiontest.Options{Format: format, Turns: turns})
}

// ManyEpochs returns a session that comes to more than 30 epochs: 700 turns in a
// window of 64,000 tokens.
func (b *Bench) ManyEpochs(seed uint64) Talk {
	return b.generate("many epochs", seed, smallWindow, headTokens/4, sessiontest.Options{Turns: 700})
}

// Small returns a session that fits its window.
func (b *Bench) Small(seed uint64, format conversation.Format) Talk {
	return b.generate("fits its window", seed, bigWindow, headTokens, sessiontest.Options{Format: format, Turns: 40})
}

func (b *Bench) generate(name string, seed uint64, window, head int, options sessiontest.Options) Talk {
	rate := 1.0 // tokens of the model for one of o200k
	if options.Format != conversation.OpenAIChat && options.Format != conversation.OpenAIResponses {
		// Older models drop thinking, and with it their cache, by themselves.
		options.Format, options.Model, options.CacheMarkers, rate = conversation.Anthropic, "claude-opus-4-6", true, 1.33
	}
	options.HeadTokens = int(float64(head) / rate)
	wanted := int(float64(head+options.Turns*turnTokens) / rate)
	options.TargetTokens = wanted
	options.Parallel, options.Thinking, options.ToolErrors, options.Reminders, options.Facts = true, true, true, true, true
	options.Signer = providerdouble.NewHandler(providerdouble.Config{})
	talk := Talk{Name: name, Format: options.Format, Window: window}
	// sessiontest goes by bytes: it is told what its bytes have come to.
	for range 2 {
		generated := sessiontest.Generate(seed, options)
		talk.Body = generated.Body(generated.Steps() - 1)
		talk.Directives, talk.Modified = generated.Directives, generated.Modified
		if r, err := read(&talk, b.counter); err == nil {
			options.TargetTokens += wanted - r.fixed.Tokens - r.sums[len(r.messages)]
		}
	}
	return talk
}

// validator returns what judges bodies of the talk as a provider would, with its
// window and its count of tokens.
func (t *Talk) validator(counter *tokens.Counter, perToken float64) func(conversation.Format, []byte) error {
	double := providerdouble.NewHandler(providerdouble.Config{
		Window: t.Window, Count: counter.Count, TokensPerO200k: perToken, AllowUnknown: true,
	})
	double.Trust(t.Body)
	return func(format conversation.Format, body []byte) error { return double.Validate(string(format), body) }
}

// reading is a talk that has been read. Sizes are o200k tokens.
type reading struct {
	talk     *Talk
	codec    wire.Codec
	counter  *tokens.Counter
	fixed    replay.Piece
	messages []message
	names    *fidelity.Names // of the messages
	turns    []conversation.Turn
	ends     []int // lengths of the requests
	sums     []int // sums[i] are the tokens of the first i messages
	model    tokens.Model
	digests  []conversation.Digest
	body     *wire.Envelope
	ofTools  map[string]bool // names of tools and of their arguments; nil: not looked for yet
	limit    float64         // a prompt has at most
	window   float64

	looksBack bool // it is counted which names that are taken up again a prompt had
}

// message is a message of a talk.
type message struct {
	conversation.Message

	form

	raw   json.RawMessage
	flags conversation.Flags
}

// form is a message, or what stands for some, as it is sent.
type form struct {
	replay.Piece

	text []byte
}

// read reads a talk.
func read(talk *Talk, counter *tokens.Counter) (*reading, error) {
	codec, known := formats.Of(cmp.Or(talk.Format, conversation.Anthropic))
	if !known {
		return nil, fmt.Errorf("format %q is unknown", talk.Format)
	}
	reader, err := session.NewReader(counter)
	if err != nil {
		return nil, err
	}
	models, err := tokens.NewModels()
	if err != nil {
		return nil, err
	}
	envelope, digests, err := reader.Read(codec, talk.Body)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", talk.Name, err)
	}
	request, err := codec.Request(envelope)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", talk.Name, err)
	}
	r := &reading{
		talk: talk, codec: codec, counter: counter, digests: digests, body: envelope, turns: conversation.Turns(digests), ends: replay.Ends(digests),
		model: models.Lookup(request.Model).WithWindow(talk.Window), sums: []int{0},
	}
	r.limit = float64(r.model.InputLimit(request.MaxOutput)) / r.model.TokensPerO200k
	r.window = float64(talk.Window) / r.model.TokensPerO200k
	var head []byte // what precedes the conversation
	for _, part := range request.Fixed {
		head = append(head, part...)
	}
	r.fixed = replay.Piece{Sum: sha256.Sum256(head), Tokens: reader.Fixed(talk.Format, request.Fixed)}
	var all []conversation.Message
	for i, digest := range digests {
		raw := codec.Mark(envelope.Element(i), "")
		parsed, err := codec.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("read %s: message %d: %w", talk.Name, i, err)
		}
		all = append(all, parsed)
		r.messages = append(r.messages, message{
			Message: parsed, raw: envelope.Element(i), flags: digest.Flags,
			form: form{Piece: replay.Piece{Sum: sha256.Sum256(raw), Tokens: digest.Tokens}, text: raw},
		})
		r.sums = append(r.sums, r.sums[i]+digest.Tokens)
	}
	r.names = fidelity.NamesOf(all)
	return r, nil
}

// tokens returns a size in the model's tokens.
func (r *reading) tokens(size int) float64 { return float64(size) * r.model.TokensPerO200k }

// lastTurn returns where the last turn of the first length messages begins.
func (r *reading) lastTurn(length int) int {
	from := 0
	for _, turn := range r.turns {
		if turn.From >= length {
			break
		}
		from = turn.From
	}
	return from
}

// holds reports whether JSON holds a text.
func holds(body []byte, text string) bool {
	if bytes.Contains(body, []byte(text)) {
		return true
	}
	quoted, err := json.Marshal(text)
	return err == nil && bytes.Contains(body, quoted[1:len(quoted)-1])
}
