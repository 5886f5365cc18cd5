package summary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

const (
	// unknownLimit is the limit of a prompt in tokens for an unknown model.
	unknownLimit = 100_000

	// attempts is how often a separate request is made, each shorter than the previous one, if the
	// provider finds it too long.
	attempts = 3

	// margin is the factor by which an estimate may be too low.
	margin = 1.15

	// thinkingRoom is how many tokens a model may think if thinking cannot be turned off.
	thinkingRoom = 8_000

	// room is how much longer than its budget an answer may be before it is cut.
	room = 1.5
)

// Ask sends a call to a provider and returns the answer. It returns ErrNoProvider if the workspace
// has no key for the provider, ErrOtherAccount if the call's account is not in use, and other
// errors if there was no answer.
type Ask func(ctx context.Context, call Call) (Reply, error)

// ErrNoProvider means that a workspace has no key for the needed provider.
var ErrNoProvider = errors.New("no key for the provider")

// ErrOtherAccount means that a workspace's requests go to another account by now.
var ErrOtherAccount = errors.New("another provider key is in use")

// maker makes the summary of one job.
type maker struct {
	job      Job
	provider Ask
	models   *tokens.Models
	count    func(string) int

	previous *session.Summary // nil if absent
	turns    []turn           // of the whole lane, up to the last covered message
	fresh    []turn           // those that the previous summary does not cover
	facts    *facts
	budget   int // limit of the summary in o200k tokens

	form  string
	model string
	usage wire.Usage
	cost  int64
}

// read parses the originals of a lane's first messages. An error is a rejection or means that
// originals cannot be read.
func (m *maker) read(entries []archive.Entry) error {
	if len(entries) != m.job.Covers {
		return reject(ReasonNotArchived)
	}
	messages := make([]conversation.Message, len(entries))
	for i, entry := range entries {
		if entry.Index != i {
			return reject(ReasonNotArchived)
		}
		message, err := m.job.Codec.Parse(entry.Raw)
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		messages[i] = message
	}
	m.turns = turnsOf(messages)
	m.fresh = m.turns
	if m.previous != nil {
		m.fresh = slices.DeleteFunc(slices.Clone(m.turns), func(t turn) bool { return t.To <= m.previous.Covers })
	}
	m.facts = factsOf(m.turns)
	return nil
}

// write returns the text of the summary. An error is a rejection, or means that the provider gave
// no answer.
func (m *maker) write(ctx context.Context) (string, error) {
	answer, err := m.ask(ctx)
	if err != nil {
		return "", err
	}
	d := parse(answer)
	if missing := d.missing(); missing != "" {
		return "", reject(unfit(answer, missing))
	}
	var before *document
	if m.previous != nil {
		before = parse(m.previous.Text)
	}
	d.settle(before)
	m.facts.clean(d)
	m.facts.restore(d)
	d.bound(m.budget, m.count)
	text := d.String()
	switch {
	case m.count(text) > m.budget || !m.facts.keeps(text):
		return "", reject(ReasonCoverage)
	case m.count(text) >= m.source():
		return "", reject(ReasonLarger)
	default:
		return text, nil
	}
}

// source counts the tokens of the turns that the summary replaces.
func (m *maker) source() int {
	sum := 0
	for i := range m.turns {
		for j := range m.turns[i].messages {
			for _, block := range m.turns[i].messages[j].Blocks {
				sum += m.count(block.Text)
			}
		}
	}
	return sum
}

// ask asks a model in the cheapest form.
func (m *maker) ask(ctx context.Context) (string, error) {
	name := m.job.Settings.Model
	if name == "" || name == sameModel {
		name = m.job.Model
	}
	own, limit := m.own(name)
	source := m.transcripts(own, limit)
	if m.job.Begin != nil {
		settle, err := m.job.Begin(ctx, own.model, mayCost(own, source.input))
		if err != nil {
			return "", reject(ReasonBudget)
		}
		defer func() { settle(m.cost) }()
	}
	if body, ok := m.base(offer{model: own.model, input: source.input, output: m.budget}); ok {
		text, err := m.askOnce(ctx, FormCached, m.job.Model, Call{
			Header: m.job.Base.Header, Body: body, Account: m.job.Base.Account,
		})
		if !errors.Is(err, errTooLong) && !errors.Is(err, ErrOtherAccount) {
			return text, err
		}
	}
	for attempt := 1; ; attempt++ {
		own.user = asked(m.previousText(), source.turns[source.first:], source.first)
		text, err := m.askOwn(ctx, name, own)
		if !errors.Is(err, errTooLong) {
			return text, err
		}
		left := len(source.turns) - source.first
		if attempt == attempts || left <= 1 {
			return "", reject(ReasonOverflow)
		}
		// The oldest turns go, calls together with their results.
		source.first += max(1, left/3)
	}
}

// mayCost returns the maximum cost of a separate request, in millionths of a dollar. A cached
// prompt is continued only if that costs less.
func mayCost(own request, input int) int64 {
	return own.model.Price.MicroUSD(input, 0, 0, 0, own.maxOutput)
}

// reading is the model's input.
type reading struct {
	turns []string
	first int // the turns before it are left out
	input int // tokens of the prompt
}

// transcripts returns the newest of the fresh turns that fit a model's window.
func (m *maker) transcripts(own request, limit int) reading {
	tokensOf := func(text string) int { return int(float64(m.count(text)) * ratio(own.model) * margin) }
	source := reading{turns: make([]string, len(m.fresh)), input: tokensOf(own.system) + tokensOf(m.previousText())}
	sizes := make([]int, len(m.fresh))
	for i := range m.fresh {
		source.turns[i] = m.fresh[i].transcript()
		sizes[i] = tokensOf(source.turns[i])
		source.input += sizes[i]
	}
	for source.first < len(sizes)-1 && source.input > limit {
		source.input -= sizes[source.first]
		source.first++
	}
	return source
}

// askOwn sends a separate request. If a model rejects the instruction not to think, it is asked
// again without it, and with room for thinking.
func (m *maker) askOwn(ctx context.Context, name string, own request) (string, error) {
	compose := m.job.Codec.Compose
	body, err := compose(own.question())
	if err != nil {
		return "", fmt.Errorf("compose request: %w", err)
	}
	text, failure := m.askOnce(ctx, FormOwn, name, Call{Body: body})
	if rejected, is := errors.AsType[rejection](failure); !is || rejected.reason != "provider_400" {
		return text, failure
	}

	own.plain = true
	plain, err := compose(own.question())
	if err != nil || bytes.Equal(plain, body) {
		return text, failure // it had no instruction about thinking
	}
	own.maxOutput += thinkingRoom
	if plain, err = compose(own.question()); err != nil {
		return "", fmt.Errorf("compose request: %w", err)
	}
	return m.askOnce(ctx, FormOwn, name, Call{Body: plain})
}

// own returns a separate request without its input, and the limit of its prompt in the model's
// tokens.
func (m *maker) own(name string) (request, int) {
	model := m.lookup(name)
	output := m.job.Settings.MaxTokens
	if output == 0 {
		output = int(float64(m.budget) * ratio(model) * room)
	}
	if model.MaxOutput > 0 {
		output = min(output, model.MaxOutput)
	}
	limit := model.InputLimit(output)
	if limit == 0 {
		limit = unknownLimit
	}
	return request{
		model: model, name: name, maxOutput: output,
		system: written(m.job.Settings, m.previous != nil, m.budget),
	}, limit
}

// base returns the body that continues the lane's cached prompt if that is possible and cheaper
// than a separate request.
func (m *maker) base(own offer) ([]byte, bool) {
	base := m.job.Base
	if base == nil {
		return nil, false
	}
	model := m.lookup(m.job.Model)
	instruction := appended(m.job.Settings, m.previous != nil, m.budget)
	input := base.Tokens + int(float64(m.count(instruction))*ratio(model)*margin)
	if m.job.Window > 0 && input+max(base.Output, m.budget) > m.job.Window {
		return nil, false
	}
	if !ridesCheaper(offer{model: model, input: input, cached: base.Cached, output: own.output}, own) {
		return nil, false
	}
	return basedBody(m.job.Codec, *base, instruction)
}

// errTooLong means that the provider finds a request too long.
var errTooLong = errors.New("the request is too long")

// askOnce sends one request and notes its cost.
func (m *maker) askOnce(ctx context.Context, form, model string, call Call) (text string, err error) {
	ctx, span := spans.StartCall(ctx, "chat", spans.Name(model))
	defer span.EndWith(&err)
	span.String(spans.Operation, "chat")
	span.String(spans.RequestModel, spans.Name(model))
	m.form, m.model = form, model
	call.Workspace, call.Codec, call.Provider = m.job.Scope.Workspace, m.job.Codec, m.job.Provider
	reply, err := m.provider(ctx, call)
	if err != nil {
		return "", err
	}
	if _, is := wire.ReadOverflow(reply.Status, reply.Body); is {
		return "", errTooLong
	}
	text, usage, err := reply.read(m.job.Codec)
	span.Int(spans.InputTokens, usage.Prompt())
	span.Int(spans.OutputTokens, usage.Output)
	m.usage.Reported = m.usage.Reported || usage.Reported
	m.usage.Input += usage.Input
	m.usage.CacheRead += usage.CacheRead
	m.usage.CacheWrite += usage.CacheWrite
	m.usage.CacheWrite1h += usage.CacheWrite1h
	m.usage.Output += usage.Output
	hour := usage.CacheWrite1h
	m.cost += m.lookup(model).Price.MicroUSD(usage.Input, usage.CacheRead, usage.CacheWrite-hour, hour, usage.Output)
	return text, err
}

func (m *maker) previousText() string {
	if m.previous == nil {
		return ""
	}
	return m.previous.Text
}

// lookup returns a model with the workspace's overrides.
func (m *maker) lookup(name string) tokens.Model {
	return m.job.Settings.Overrides.On(m.models.Lookup(name), name)
}

// ratio is how many of a model's tokens make one o200k token.
func ratio(model tokens.Model) float64 {
	if model.TokensPerO200k == 0 {
		return 1
	}
	return model.TokensPerO200k
}
