package memorybench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/anthropic"
)

// asksForSummary is Claude Code's request for a summary, abridged.
const asksForSummary = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n" +
	"Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests and your previous actions.\n\n" +
	"<example>\n</example>\n\nREMINDER: Do NOT call any tools. Respond with plain text only — an <analysis> block followed by a <summary> block. Tool calls will be rejected and you will fail the task."

// The model named by Body, and the tokens that Claude Code reserves for an answer.
const (
	recordedModel  = "claude-sonnet-4-5"
	recordedOutput = 32_000
)

// nextMessages is the number of messages after a compaction whose names count.
const nextMessages = 2 * firstCalls

// Answered summarizes how clients' recorded compactions would have been answered, and compares the answers'
// contents with the clients' own summaries.
type Answered struct {
	Compactions int
	Ready       int            // an answer was ready
	Passed      map[string]int // reasons why the others were passed to the provider

	Names        int // identifiers of the history that the next messages use, if an answer was ready
	Ours, Theirs int // in our answer, and in the client's recorded summary

	OurTokens, TheirTokens int // o200k tokens of all answers, and of the recorded summaries
}

// Answer answers recorded compactions from the state of their history at a context window of 200,000
// tokens.
func Answer(ctx context.Context, counter *tokens.Counter, compactions []Compaction) (*Answered, error) {
	sum := &Answered{Passed: map[string]int{}}
	for i := range compactions {
		one := &compactions[i]
		sum.Compactions++
		reply, reason, err := one.answer(ctx, counter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.ID, err)
		}
		if reply == nil {
			sum.Passed[reason]++
			continue
		}
		sum.Ready++
		sum.add(one, reply.Text, counter)
	}
	return sum, nil
}

// add compares an answer with the client's own summary.
func (a *Answered) add(one *Compaction, answer string, counter *tokens.Counter) {
	own := recordedSummary(one.Request)
	a.OurTokens += counter.Count(answer)
	a.TheirTokens += counter.Count(own)
	after := one.After[:min(nextMessages, len(one.After))]
	names := fidelity.NamesOf(slices.Concat(one.Before, after))
	for _, name := range names.TakenUp(len(one.Before), len(one.Before)+len(after)) {
		a.Names++
		if strings.Contains(answer, name) {
			a.Ours++
		}
		if strings.Contains(own, name) {
			a.Theirs++
		}
	}
}

// recordedSummary returns the text of a request that continues from a client's summary.
func recordedSummary(request []byte) string {
	var body struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(request, &body) != nil || len(body.Messages) == 0 {
		return ""
	}
	message, err := anthropic.New().Parse(body.Messages[0])
	if err != nil {
		return ""
	}
	var texts []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text {
			texts = append(texts, conversation.WithoutReminders(block.Text))
		}
	}
	return strings.Join(texts, "\n")
}

// answer runs an epoch on the prompt before a compaction, if there is an occasion for one, and answers the
// compaction from it.
func (c *Compaction) answer(ctx context.Context, counter *tokens.Counter) (*pipeline.Reply, string, error) {
	models, err := tokens.NewModels()
	if err != nil {
		return nil, "", fmt.Errorf("models: %w", err)
	}
	model := models.Lookup(recordedModel)
	config := modules.Catalog().Default()
	pipeline.Change[compactionbridge.Config](&config).ClientCompaction = compactionbridge.ClientCompactionAnswer
	shortener := ipc.New(counter.Message)
	read := func(typed string, class client.Kind) (*pipeline.Exchange, error) {
		body, err := Body(c.Before, typed)
		if err != nil {
			return nil, err
		}
		body = []byte(strings.Replace(string(body), `"max_tokens":1000`, fmt.Sprintf(`"max_tokens":%d`, recordedOutput), 1))
		exchange, err := pipelinetest.ReadExchange(anthropic.New(), body, pipelinetest.Options{
			Counter: counter, Config: config, Class: client.Class{Kind: class, Client: client.ClaudeCode, Confidence: 1},
			Limit: model.InputLimit(recordedOutput), Factor: model.TokensPerO200k,
			Anchor: session.Anchor{Tokens: c.Tokens, Position: len(c.Before), Model: recordedModel},
		})
		if err == nil {
			exchange.Model = model
		}
		return exchange, err
	}
	before, err := read("Go on.", client.Main)
	if err != nil {
		return nil, "", fmt.Errorf("make exchange: %w", err)
	}
	if c.Tokens == 0 {
		before.Lane.Anchor = session.Anchor{}
	}
	shortened, err := shortener.Process(ctx, &before.View)
	if err != nil {
		return nil, "", fmt.Errorf("shorten: %w", err)
	}
	before.Take(shortened)
	asks, err := read(asksForSummary, client.Compaction)
	if err != nil {
		return nil, "", fmt.Errorf("make exchange: %w", err)
	}
	asks.Lane.Projection, asks.Lane.Met = before.Lane.Projection, len(c.Before)
	draft, err := compactionbridge.New(counter, compactionbridge.Past{}).Answering(shortener.Notes).Answer(ctx, &asks.View)
	if err != nil {
		return nil, "", fmt.Errorf("answer: %w", err)
	}
	if draft == nil {
		return nil, "", nil
	}
	for _, event := range draft.Report.Events {
		if event.Type == compactionbridge.Passed {
			return nil, event.Reason, nil
		}
	}
	return draft.Reply, "", nil
}

// String summarizes how many were answered, and the contents of the answers.
func (a *Answered) String() string {
	of := func(part, whole int) string { return percent(float64(part) / float64(max(whole, 1))) }
	return fmt.Sprintf("%d of %d compactions answered (passed: %v). Of %d identifiers the answers hold %d (%s) in %d tokens each, the clients' own summaries %d (%s) in %d tokens",
		a.Ready, a.Compactions, a.Passed, a.Names, a.Ours, of(a.Ours, a.Names), a.OurTokens/max(a.Ready, 1), a.Theirs, of(a.Theirs, a.Names), a.TheirTokens/max(a.Ready, 1))
}
