package memorybench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/anthropic"
)

// newestShown is how many of the newest messages a question's prompt shows.
const newestShown = 10

// Rehydration measures the module rehydrator, with questions whose evidence is no longer in the prompt.
type Rehydration struct {
	counter *tokens.Counter
	known   map[string]conversation.Digest
}

// NewRehydration returns a bench of the module.
func NewRehydration(counter *tokens.Counter) *Rehydration {
	return &Rehydration{counter: counter, known: map[string]conversation.Digest{}}
}

// Questions asks every n-th question of a set about a tool's output.
func (r *Rehydration) Questions(ctx context.Context, set *Recorded, n int) ([]Figure, error) {
	fired := Figure{Name: "explicit questions: something comes back", Least: 0.90}
	right := Figure{Name: "explicit questions: the call and its result come back", Least: 0.90}
	answered := Figure{Name: "explicit questions: the answer comes back", Least: 0.85}
	for i := range set.Tools {
		if i%n != 0 {
			continue
		}
		ask := &set.Tools[i]
		text, items, err := r.ask(ctx, set, ask)
		if err != nil {
			return nil, err
		}
		told := func() string { return fmt.Sprintf("%d: %.200q → %v, want %v", i, ask.Text(), items, ask.Evidence) }
		fired.add(text != "", told)
		right.add(slices.ContainsFunc(items, func(item string) bool {
			return within(item, ask.Evidence[0]) && within(item, ask.Evidence[len(ask.Evidence)-1])
		}), told)
		answered.add(strings.Contains(text, ask.Answer), told)
	}
	return []Figure{fired, right, answered}, nil
}

// References sends the messages of a set that refer to earlier content.
func (r *Rehydration) References(ctx context.Context, set *Recorded) (Figure, error) {
	right := Figure{Name: "messages that refer back: a message they mean comes back, or a newer version of its file", Least: 0.75}
	for i := range set.Refs {
		ask := &set.Refs[i]
		messages := set.Sessions[ask.Session]
		_, items, err := r.ask(ctx, set, ask)
		if err != nil {
			return Figure{}, err
		}
		right.add(slices.ContainsFunc(items, func(item string) bool {
			return slices.ContainsFunc(ask.Evidence, func(at int) bool { return within(item, at) || isNewerVersion(messages, item, at) })
		}), func() string { return fmt.Sprintf("%d: %.200q → %v, want %v", i, ask.Text(), items, ask.Evidence) })
	}
	return right, nil
}

// Ordinary sends requests from the middle of a conversation without a reference to earlier content:
// unchanged, and with all but the newest messages compressed.
func (r *Rehydration) Ordinary(ctx context.Context, requests []Labeled) ([]Figure, error) {
	sent := Figure{Name: "ordinary requests as they were sent: something comes back", Never: true}
	forced := Figure{Name: "the same, all but the newest three messages compressed", Unwanted: true}
	for i := range requests {
		request := &requests[i]
		if request.Label != Normal {
			continue
		}
		text, items, length, err := r.process(ctx, request.Body, 0)
		if err != nil {
			return nil, err
		}
		told := func() string { return fmt.Sprintf("%s: %v %.600s", request.ID, items, text) }
		sent.add(text != "", told)
		if length <= newestOrdinary {
			forced.add(false, told)
			continue
		}
		if text, items, _, err = r.process(ctx, request.Body, length-newestOrdinary); err != nil {
			return nil, err
		}
		forced.add(text != "", told)
	}
	return []Figure{sent, forced}, nil
}

// newestOrdinary is how many messages an ordinary request's prompt shows.
const newestOrdinary = 3

// ask puts a question in its session, with its evidence compressed.
func (r *Rehydration) ask(ctx context.Context, set *Recorded, ask *Ask) (text string, items []string, err error) {
	messages := set.Sessions[ask.Session][:ask.At]
	body, err := Body(messages, ask.Text())
	if err != nil {
		return "", nil, err
	}
	shown := max(ask.Evidence[len(ask.Evidence)-1]+1, len(messages)-newestShown)
	text, items, _, err = r.process(ctx, body, shown)
	return text, items, err
}

// process runs the module on a body whose prompt shows no message before shown. It returns the content that
// came back and the body's number of messages.
func (r *Rehydration) process(ctx context.Context, body []byte, shown int) (text string, items []string, length int, err error) {
	exchange, err := r.exchange(body, shown)
	if err != nil {
		return "", nil, 0, err
	}
	pipeline.NewChain(rehydrator.New(nil)).Process(ctx, exchange)
	if err := failure(exchange); err != nil {
		return "", nil, 0, err
	}
	for _, insert := range exchange.Injected(rehydrator.Name) {
		text, items = insert.Text, insert.Items
	}
	return text, items, len(exchange.Conversation.Digests), nil
}

// exchange returns an exchange whose prompt shows no message before shown.
func (r *Rehydration) exchange(body []byte, shown int) (*pipeline.Exchange, error) {
	config := modules.Catalog().Default()
	config.Modules = []string{rehydrator.Name}
	exchange, err := pipelinetest.ReadExchange(anthropic.New(), body, pipelinetest.Options{Counter: r.counter, Config: config, Known: r.known})
	if err != nil {
		return nil, fmt.Errorf("make exchange: %w", err)
	}
	if shown > 0 {
		record := json.RawMessage(`{"role":"user","content":"[AUTO CONTEXT COMPRESSION]\nnothing"}`)
		exchange.Lane.Projection = &session.Projection{
			Number: 1, Covers: shown, Chain: exchange.Conversation.Chain[shown],
			Parts: []session.Part{{From: 0, To: shown, Level: 3, Raw: record, Tokens: 20, Messages: 1}},
		}
	}
	return exchange, nil
}

// failure returns the error of an exchange's module.
func failure(exchange *pipeline.Exchange) error {
	for i := range exchange.Report.Events {
		if event := &exchange.Report.Events[i]; event.Type == "failed" {
			return errors.New(event.Module + " failed: " + event.Reason)
		}
	}
	return nil
}

// isNewerVersion reports whether a pointer covers a later call on a file that message at reads or changes.
func isNewerVersion(messages []conversation.Message, item string, at int) bool {
	var paths []string
	documents := search.Documents(0, messages)
	for i := range documents {
		if documents[i].From <= at && at < documents[i].To {
			paths = append(paths, documents[i].Paths...)
		}
	}
	return slices.ContainsFunc(documents, func(document search.Document) bool {
		return document.From > at && within(item, document.From) && slices.ContainsFunc(document.Paths, func(path string) bool { return slices.Contains(paths, path) })
	})
}

// within reports whether a pointer covers a message.
func within(item string, at int) bool {
	from, to, isSpan := strings.Cut(strings.ReplaceAll(item, "#", ""), "–")
	if !isSpan {
		to = from
	}
	first, errFirst := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	return errFirst == nil && errLast == nil && first <= at && at <= last
}
