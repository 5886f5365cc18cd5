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

// Talk is a session to compare policies on.
type Talk struct {
	Name   string
	Format conversation.Format
	Window int    // context window in the model's tokens
	Body   []byte // of the last request

	// Directives and Modified are the content that the prompt should keep: standing orders and changed
	// files. If nil, they are extracted from the messages.
	Directives, Modified []string
}

// The sizes of generated sessions, in the model's tokens.
const (
	headTokens  = 20_000
	turnTokens  = 2_000
	bigWindow   = 200_000
	smallWindow = 64_000
)

// Generated returns a session of turns with about 2,000 tokens each after a head of about 20,000, in a
// window of 200,000 tokens: edits, repeated reads, searches, test runs, failures, thinking, directives, and
// identifiers that are used again later.
func (b *Bench) Generated(seed uint64, format conversation.Format, turns int) Talk {
	return b.generate(fmt.Sprintf("%d turns", turns), seed, bigWindow, headTokens, sessiontest.Options{Format: format, Turns: turns})
}

// ManyEpochs returns a session with more than 30 epochs: 700 turns in a window of 64,000 tokens.
func (b *Bench) ManyEpochs(seed uint64) Talk {
	return b.generate("many epochs", seed, smallWindow, headTokens/4, sessiontest.Options{Turns: 700})
}

// Small returns a session that fits its window.
func (b *Bench) Small(seed uint64, format conversation.Format) Talk {
	return b.generate("fits its window", seed, bigWindow, headTokens, sessiontest.Options{Format: format, Turns: 40})
}

func (b *Bench) generate(name string, seed uint64, window, head int, options sessiontest.Options) Talk {
	rate := 1.0 // the model's tokens per o200k token
	if options.Format != conversation.OpenAIChat && options.Format != conversation.OpenAIResponses {
		// Older models drop thinking, and with it their cache, on their own.
		options.Format, options.Model, options.CacheMarkers, rate = conversation.Anthropic, "claude-opus-4-6", true, 1.33
	}
	options.HeadTokens = int(float64(head) / rate)
	wanted := int(float64(head+options.Turns*turnTokens) / rate)
	options.TargetTokens = wanted
	options.Parallel, options.Thinking, options.ToolErrors, options.Reminders, options.Facts = true, true, true, true, true
	options.Signer = providerdouble.NewHandler(providerdouble.Config{})
	talk := Talk{Name: name, Format: options.Format, Window: window}
	// sessiontest counts bytes, so correct its size by the tokens of the last result.
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

// validator returns a function that judges bodies of the talk as a provider would, with its window and
// token count.
func (t Talk) validator(counter *tokens.Counter, perToken float64) func(conversation.Format, []byte) error {
	double := providerdouble.NewHandler(providerdouble.Config{
		Window: t.Window, Count: counter.Count, TokensPerO200k: perToken, AllowUnknown: true,
	})
	double.Trust(t.Body)
	return func(format conversation.Format, body []byte) error { return double.Validate(string(format), body) }
}

// reading is a parsed talk. Sizes are o200k tokens.
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
	ofTools  map[string]bool // names of tools and of their arguments; nil until needed
	limit    float64         // maximum size of a prompt
	window   float64

	looksBack bool // count the reused names that a prompt had
}

// message is a message of a talk.
type message struct {
	conversation.Message

	form

	raw   json.RawMessage
	flags conversation.Flags
}

// form is a message, or a replacement of some, in its sent form.
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
	var head []byte // the parts before the conversation
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

// lastTurn returns the start of the last turn of the first length messages.
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

// holds reports whether JSON contains a text.
func holds(body []byte, text string) bool {
	if bytes.Contains(body, []byte(text)) {
		return true
	}
	quoted, err := json.Marshal(text)
	return err == nil && bytes.Contains(body, quoted[1:len(quoted)-1])
}
