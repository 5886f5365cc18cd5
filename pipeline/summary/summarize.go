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
	// unknownLimit is how many tokens a prompt may have for a model nobody knows.
	unknownLimit = 100_000

	// attempts is how often a request of its own is made, each shorter than the
	// one before it, if the provider finds it too long.
	attempts = 3

	// margin is by how much an estimate may be too low.
	margin = 1.15

	// thinkingRoom is how many tokens a model may think that cannot be told not to.
	thinkingRoom = 8_000

	// room is how much longer than its budget an answer may be before it is cut.
	room = 1.5
)

// Ask sends a call to a provider and returns the answer. Its error says that there was
// none; ErrNoProvider that nobody could be asked, ErrOtherAccount that the call's
// account could not.
type Ask func(ctx context.Context, call Call) (Reply, error)

// ErrNoProvider says that a workspace has no key for the provider that would be asked.
var ErrNoProvider = errors.New("no key for the provider")

// ErrOtherAccount says that a workspace's requests go to another account by now.
var ErrOtherAccount = errors.New("another provider key is in use")

// maker makes the summary of one job.
type maker struct {
	job      Job
	provider Ask
	models   *tokens.Models
	count    func(string) int

	previous *session.Summary // nil if none
	turns    []turn           // of the whole lane, up to what is covered
	fresh    []turn           // those that the previous summary does not stand for
	facts    *facts
	budget   int // o200k tokens that the summary may have

	form  string
	model string
	usage wire.Usage
	cost  int64
}

// read parses the originals of a lane's first messages. An error is a rejection or
// tells of originals that cannot be read.
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

// write returns the text of the summary. An error is a rejection, or says that the
// provider gave no answer.
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

// source counts what the summary stands for.
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

// ask asks a model in the form that costs least.
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

// mayCost returns what a request of its own costs at most, in millionths of a dollar.
// A cached prompt is gone on from only where that costs less.
func mayCost(own request, input int) int64 {
	return own.model.Price.MicroUSD(input, 0, 0, 0, own.maxOutput)
}

// reading is what a model is given to read.
type reading struct {
	turns []string
	first int // the turns before it are left out
	input int // tokens of the prompt
}

// transcripts returns the newest of the fresh turns that a model's window holds.
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

// askOwn sends a request of its own. A model that rejects being told not to think is
// asked again without that, and with room for it.
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
		return text, failure // it was not told anything about thinking
	}
	own.maxOutput += thinkingRoom
	if plain, err = compose(own.question()); err != nil {
		return "", fmt.Errorf("compose request: %w", err)
	}
	return m.askOnce(ctx, FormOwn, name, Call{Body: plain})
}

// own returns a request of its own without what is to be read, and how many of the
// model's tokens its prompt may have.
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

// base returns the body that goes on from the lane's cached prompt if that is
// possible and cheaper than a request of its own.
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

// errTooLong says that the provider finds a request too long.
var errTooLong = errors.New("the request is too long")

// askOnce sends one request and notes what it cost.
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

// lookup returns what holds for a model.
func (m *maker) lookup(name string) tokens.Model {
	return m.job.Settings.Overrides.On(m.models.Lookup(name), name)
}

// ratio is how many of a model's tokens one o200k token comes to.
func ratio(model tokens.Model) float64 {
	if model.TokensPerO200k == 0 {
		return 1
	}
	return model.TokensPerO200k
}
