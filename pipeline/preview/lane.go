package preview

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strconv"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/cost"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// lane runs the requests of a recorded conversation, one after the other, as a lane
// of the proxy does.
type lane struct {
	config   pipeline.Config
	model    tokens.Model
	recorded *session.Recorded
	module   *ipc.Module

	codec wire.Codec
	body  *wire.Envelope
	whole pipeline.Conversation
	fixed int // o200k tokens of what precedes the messages

	projection *session.Projection
	attempts   session.Attempts
	heat       session.Heat
	sent       int // size of the last prompt as it would go out
	received   int // and as the client sent it
}

func newLane(config pipeline.Config, model tokens.Model, recorded *session.Recorded) (*lane, error) {
	body, err := standIns(recorded.Messages)
	if err != nil {
		return nil, err
	}
	l := &lane{config: config, model: model, recorded: recorded, module: ipc.New(counter{}).Remembering(), codec: anthropic.New(), body: body}
	if l.model.TokensPerO200k == 0 {
		l.model.TokensPerO200k = 1
	}
	sum := 0
	var digests []conversation.Digest
	for i, message := range recorded.Messages {
		name := sha256.Sum256([]byte(strconv.Itoa(i)))
		digests = append(digests, conversation.Digest{
			Sum: name, Identity: name, Role: message.Role, Flags: message.Flags, Tokens: message.Tokens,
		})
		sum += message.Tokens
	}
	l.whole = pipeline.NewConversation(l.codec, l.body, digests)
	l.whole.Chain = session.Chain(session.Scope{Format: l.codec.Format()}, session.Hint{}, digests)
	l.fixed = l.precedes()
	return l, nil
}

// precedes returns the o200k tokens of system prompt and tools: what the first request
// had beside its messages.
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
			continue // its messages are no longer kept
		}
		if err := l.send(ctx, sent, &figures); err != nil {
			return Session{}, err
		}
	}
	return figures, nil
}

// send takes one request through the module.
func (l *lane) send(ctx context.Context, sent *session.Sent, figures *Session) error {
	exchange := l.exchange(sent)
	standing := exchange.Projection
	wasWarm := !l.heat.Cold(sent.At, l.model.Name)
	draft, err := l.module.Process(ctx, &exchange.View)
	if err != nil {
		return err
	}
	exchange.Take(draft)
	l.attempts = exchange.Attempts
	prompt, original := exchange.Size(exchange.Projection), exchange.Size(nil)
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
	if exchange.Projection != standing {
		figures.Epochs++
		if wasWarm {
			figures.Rewrites++
		}
		shared = l.scale(l.fixed + unchanged(l.whole.Digests, standing, exchange.Projection))
	}
	if exchange.Projection != nil {
		for _, part := range exchange.Projection.Parts {
			figures.Deepest = max(figures.Deepest, part.Level)
		}
	}
	figures.Verbatim += int64(max(0, original-l.scale(replaced(exchange.Digests, exchange.Projection))))
	spent := l.costs(wasWarm, shared, prompt)
	figures.Cost += spent
	baseline := cost.Baseline{Sent: original, Ahead: l.scale(l.fixed), Grown: original - l.received, Limit: sent.Takes}
	switch {
	case baseline.Fits():
		figures.Net += l.without(baseline, wasWarm) - spent
	case prompt <= sent.Takes:
		figures.Reach++
	}
	l.projection, l.received, l.sent = exchange.Projection, original, prompt
	l.heat = session.Heat{At: sent.At, TTL: l.recorded.TTL, Position: sent.Position, Tokens: prompt, Model: l.model.Name}
	if l.projection != nil {
		l.heat.Projection = l.projection.Number
	}
	return nil
}

// exchange returns a request as the module sees it.
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
				Session: l.recorded.Session, Projection: l.projection, NextProjection: 1, Now: sent.At, Heat: l.heat, Attempts: l.attempts,
			},
			Counter: counter{}, Keeper: pipeline.Forgetful{},
		},
	}
	if l.projection == nil {
		return exchange
	}
	exchange.NextProjection = l.projection.Number + 1
	if l.projection.Covers > sent.Position {
		exchange.Projection = nil // the client went back to before it
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

// unchanged returns the o200k tokens of the messages that two prompts of a lane have
// in common before the first one that differs. Either may be nil: the originals.
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

// replaced returns the o200k tokens of the messages that others stand for in a prompt.
func replaced(digests []conversation.Digest, projection *session.Projection) int {
	if projection == nil {
		return 0
	}
	sum := 0
	for _, part := range projection.Parts {
		if part.Raw == nil {
			continue
		}
		for i := part.From; i < min(part.To, len(digests)); i++ {
			sum += digests[i].Tokens
		}
	}
	return sum
}

// partAt returns the part of a projection that stands for a message; one without Raw
// where the message stands for itself.
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

// without returns what the cheaper of the prompts costs that savings are counted against.
func (l *lane) without(baseline cost.Baseline, isWarm bool) int64 {
	least := l.costs(isWarm, l.received, baseline.Sent)
	if size, summary, ok := baseline.Compacted(l.model.Price, l.recorded.TTL > 0); ok {
		least = min(least, l.costs(isWarm, l.received, size)+int64(summary))
	}
	return least
}

// costs returns what a prompt costs, in millionths of a US dollar, of which so many
// tokens stood in the last one.
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
