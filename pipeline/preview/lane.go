package preview

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// lane runs the requests of a recorded conversation, one after the other, like a lane of the proxy.
type lane struct {
	config   pipeline.Config
	model    tokens.Model
	recorded *session.Recorded
	module   *ipc.Module

	talk

	whole pipeline.Conversation
	fixed int // o200k tokens before the messages

	projection *session.Projection
	attempts   session.Attempts
	heat       session.CacheState
	sent       int // size of the last prompt as compressed
	received   int // and as the client sent it

	got   map[int]bool // messages that the model got again since the last compaction
	gotIn int          // number of compactions until then
}

// talk is the messages of a lane with the functions to read and count them.
type talk struct {
	codec   wire.Codec
	body    *wire.Envelope
	digests []conversation.Digest
	count   func(text string) int
	names   *fidelity.Names // nil for stand-ins
}

// newLane returns a lane with stand-ins for the messages.
func newLane(config pipeline.Config, model tokens.Model, recorded *session.Recorded) (*lane, error) {
	messages, err := standIns(recorded.Messages)
	if err != nil {
		return nil, err
	}
	return laneOf(config, model, recorded, ipc.New(countMessage).Remembering(), messages), nil
}

// laneOf returns a lane with messages for a module.
func laneOf(config pipeline.Config, model tokens.Model, recorded *session.Recorded, module *ipc.Module, messages talk) *lane {
	l := &lane{config: config, model: model, recorded: recorded, module: module, talk: messages}
	l.model.TokensPerO200k = factor(recorded, messages.digests, cmp.Or(model.TokensPerO200k, 1))
	l.whole = pipeline.NewConversation(l.codec, l.body, l.digests)
	l.whole.Chain = session.Chain(session.Scope{Format: l.codec.Format()}, session.Hint{}, l.digests)
	l.fixed = l.precedes()
	return l
}

// factor returns the model's tokens per o200k token, as the proxy used it in the recorded requests: it learns
// the factor from the provider's counts, which may differ from the catalog's. The growth of the prompt between
// the first and the last request shows it, since system prompt and tools are in both. The catalog's applies to
// short and implausible conversations, and where the two are close, because growth is less exact.
func factor(recorded *session.Recorded, digests []conversation.Digest, catalog float64) float64 {
	const enough, least, most, near = 1000, 0.4, 3.0, 0.05 // o200k tokens; factors; a share
	fits := func(sent session.Sent) bool {
		return sent.Before > 0 && sent.Position > 0 && sent.Position <= len(digests)
	}
	first := slices.IndexFunc(recorded.Requests, fits)
	if first < 0 {
		return catalog
	}
	from := recorded.Requests[first]
	for _, to := range slices.Backward(recorded.Requests) {
		if !fits(to) || to.Position <= from.Position {
			continue
		}
		grown := 0
		for _, digest := range digests[from.Position:to.Position] {
			grown += digest.Tokens
		}
		found := float64(to.Before-from.Before) / float64(max(grown, 1))
		if grown >= enough && found >= least && found <= most && math.Abs(found/catalog-1) > near {
			return found
		}
		return catalog
	}
	return catalog
}

// precedes returns the o200k tokens of system prompt and tools: the first request without its
// messages.
func (l *lane) precedes() int {
	for _, sent := range l.recorded.Requests {
		if sent.Position > len(l.whole.Digests) || sent.Before == 0 {
			continue
		}
		rest := float64(sent.Before) / l.model.TokensPerO200k
		for _, digest := range l.whole.Digests[:sent.Position] {
			rest -= float64(digest.Tokens)
		}
		return max(0, int(rest))
	}
	return 0
}

// run sends all requests.
func (l *lane) run(ctx context.Context) (Session, error) {
	figures := Session{Figures: Figures{Sessions: 1}}
	for i := range l.recorded.Requests {
		sent := &l.recorded.Requests[i]
		if sent.Position < 1 || sent.Position > len(l.whole.Digests) {
			continue // its messages are no longer stored
		}
		if ctx.Err() != nil {
			return Session{}, ctx.Err()
		}
		exchange, err := l.send(ctx, sent, &figures)
		if err != nil {
			return Session{}, err
		}
		if l.names != nil {
			l.needs(holds(exchange), sent.Position, l.next(i), &figures)
		}
	}
	return figures, nil
}

// needs counts the identifiers that messages after a prompt reuse, those that the prompt has, and the
// newest messages with the others.
func (l *lane) needs(has func(name string) bool, from, to int, figures *Session) {
	if l.got == nil || figures.Epochs != l.gotIn {
		l.got, l.gotIn = map[int]bool{}, figures.Epochs
	}
	for _, name := range l.names.TakenUp(from, to) {
		figures.TakenUp++
		if has(name) {
			figures.Held++
			continue
		}
		if message := l.names.Newest(name, from); !l.got[message] {
			l.got[message] = true
			figures.Again++
		}
	}
}

// next returns how many messages the client's next request has, or those of request i if the next
// one has no more or does not exist.
func (l *lane) next(i int) int {
	position := l.recorded.Requests[i].Position
	if i+1 == len(l.recorded.Requests) {
		return position
	}
	return min(max(position, l.recorded.Requests[i+1].Position), len(l.digests))
}

// holds returns a function that reports whether a prompt contains a name.
func holds(exchange *pipeline.Exchange) func(name string) bool {
	var messages [][]byte
	for _, piece := range exchange.Pieces() {
		if piece.Raw != nil {
			messages = append(messages, piece.Raw)
			continue
		}
		for _, raw := range exchange.Originals(piece.From, piece.To) {
			messages = append(messages, raw)
		}
	}
	return func(name string) bool {
		return slices.ContainsFunc(messages, func(message []byte) bool { return bytes.Contains(message, []byte(name)) })
	}
}

// send runs one request through the module, and returns it in the form to send.
func (l *lane) send(ctx context.Context, sent *session.Sent, figures *Session) (*pipeline.Exchange, error) {
	exchange := l.exchange(sent)
	standing := exchange.Lane.Projection
	wasWarm := !l.heat.Cold(sent.At, l.model.Name)
	draft, err := l.module.Process(ctx, &exchange.View)
	if err != nil {
		return nil, err
	}
	exchange.Take(draft)
	l.attempts = exchange.Lane.Attempts
	prompt, original := exchange.Size(exchange.Lane.Projection), exchange.Size(nil)
	figures.Requests++
	figures.Received += int64(original)
	figures.Sent += int64(prompt)
	if sent.Limit > 0 {
		figures.FullBefore, figures.FullSent = max(figures.FullBefore, 1000*original/sent.Limit), max(figures.FullSent, 1000*prompt/sent.Limit)
		if prompt > sent.Limit {
			figures.TooLong = 1
		}
	}
	shared := l.sent
	if exchange.Lane.Projection != standing {
		figures.Epochs++
		if wasWarm {
			figures.Rewrites++
		}
		shared = l.scale(l.fixed + unchanged(l.whole.Digests, standing, exchange.Lane.Projection))
	}
	if exchange.Lane.Projection != nil {
		for _, part := range exchange.Lane.Projection.Parts {
			figures.Deepest = max(figures.Deepest, part.Level)
		}
	}
	figures.Verbatim += int64(max(0, original-l.scale(replaced(exchange.Conversation.Digests, exchange.Lane.Projection, 0))))
	figures.AtL3 += int64(l.scale(replaced(exchange.Conversation.Digests, exchange.Lane.Projection, 3)))
	spent := l.costs(wasWarm, shared, prompt)
	figures.Cost += spent
	baseline := cost.Baseline{Sent: original, Ahead: l.scale(l.fixed), Grown: original - l.received, Limit: sent.Takes}
	switch {
	case baseline.Fits():
		figures.Net += l.without(baseline, wasWarm) - spent
	case prompt <= sent.Takes:
		figures.Reach++
		figures.ReachReceived += int64(original)
		figures.ReachSent += int64(prompt)
	}
	l.projection, l.received, l.sent = exchange.Lane.Projection, original, prompt
	l.heat = session.CacheState{At: sent.At, TTL: l.recorded.TTL, Position: sent.Position, Tokens: prompt, Model: l.model.Name}
	if l.projection != nil {
		l.heat.Projection = l.projection.Number
	}
	return exchange, nil
}

// exchange returns a request in the form that the module reads.
func (l *lane) exchange(sent *session.Sent) *pipeline.Exchange {
	messages := l.whole
	messages.Digests, messages.Turns, messages.Chain = l.whole.Digests[:sent.Position], until(l.whole.Turns, sent.Position), l.whole.Chain[:sent.Position+1]
	exchange := &pipeline.Exchange{
		Codec: l.codec, Body: l.body,
		View: pipeline.View{
			Scope: session.Scope{Format: l.codec.Format()}, Config: l.config, Request: wire.Request{Model: l.model.Name}, Model: l.model,
			Conversation: messages,
			Limits:       pipeline.Limits{Limit: sent.Limit, Factor: l.model.TokensPerO200k, Fixed: l.fixed},
			Lane: pipeline.Lane{
				Place: pipeline.Place{Session: l.recorded.Session}, Projection: l.projection, NextProjection: 1, Now: sent.At, Heat: l.heat, Attempts: l.attempts,
			},
			CountText: l.count, Committer: pipeline.Forgetful{},
		},
	}
	if l.projection == nil {
		return exchange
	}
	exchange.Lane.NextProjection = l.projection.Number + 1
	if l.projection.Covers > sent.Position {
		exchange.Lane.Projection = nil // the client went back to before it
	}
	return exchange
}

// until returns the turns of the first messages of a list.
func until(turns []conversation.Turn, position int) []conversation.Turn {
	n, _ := slices.BinarySearchFunc(turns, position, func(turn conversation.Turn, position int) int {
		return cmp.Compare(turn.From, position)
	})
	if n == 0 || turns[n-1].To <= position {
		return turns[:n]
	}
	first := slices.Clone(turns[:n])
	first[n-1].To = position
	return first
}

func (l *lane) scale(size int) int { return int(float64(size) * l.model.TokensPerO200k) }

// unchanged returns the o200k tokens of the messages that two prompts of a lane have in common
// before the first one that differs. A nil projection means the originals.
func unchanged(digests []conversation.Digest, before, after *session.Projection) int {
	same := 0
	for i := 0; i < len(digests); {
		one, other := partAt(before, i), partAt(after, i)
		if one.Raw == nil && other.Raw == nil {
			same += digests[i].Tokens
			i++
			continue
		}
		if one.From != other.From || one.To != other.To || !bytes.Equal(one.Raw, other.Raw) {
			return same
		}
		same += one.Tokens
		i = one.To
	}
	return same
}

// replaced returns the o200k tokens of the messages that a prompt replaces, at a level or deeper.
func replaced(digests []conversation.Digest, projection *session.Projection, level int) int {
	if projection == nil {
		return 0
	}
	sum := 0
	for _, part := range projection.Parts {
		if part.Raw == nil || part.Level < level {
			continue
		}
		for i := part.From; i < min(part.To, len(digests)); i++ {
			sum += digests[i].Tokens
		}
	}
	return sum
}

// partAt returns the part of a projection that replaces a message, or a part without Raw if the
// message is unchanged.
func partAt(projection *session.Projection, message int) session.Part {
	if projection != nil && message < projection.Covers {
		for _, part := range projection.Parts {
			if part.From <= message && message < part.To {
				return part
			}
		}
	}
	return session.Part{From: message, To: message + 1}
}

// without returns the cost of the cheaper prompt that savings are compared with.
func (l *lane) without(baseline cost.Baseline, isWarm bool) int64 {
	least := l.costs(isWarm, l.received, baseline.Sent)
	if size, summary, ok := baseline.Compacted(l.model.Price, l.recorded.TTL > 0); ok {
		least = min(least, l.costs(isWarm, l.received, size)+int64(summary))
	}
	return least
}

// costs returns the cost of a prompt, in millionths of a US dollar, if so many of its tokens were
// in the last one.
func (l *lane) costs(isWarm bool, shared, size int) int64 {
	price := l.model.Price
	if l.recorded.TTL == 0 {
		return price.MicroUSD(size, 0, 0, 0, 0)
	}
	read := 0
	if isWarm {
		read = min(shared, size)
	}
	if l.recorded.TTL > session.ShortTTL {
		return price.MicroUSD(0, read, 0, size-read, 0)
	}
	return price.MicroUSD(0, read, size-read, 0, 0)
}
