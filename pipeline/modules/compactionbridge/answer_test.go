package compactionbridge_test

import (
	"context"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/anthropic"
)

// asksForSummary is Claude Code's request for a summary, without most of its text.
const asksForSummary = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n" +
	"Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests and your previous actions.\n\n" +
	"<example>\n</example>\n\nREMINDER: Do NOT call any tools. Respond with plain text only — an <analysis> block followed by a <summary> block. Tool calls will be rejected and you will fail the task."

// asking is a request for a summary of a history of which a compaction is ready, and how many
// messages stand before the request.
func asking(t *testing.T) (exchange *pipeline.View, history int) {
	t.Helper()
	config := modules.Catalog().Default()
	pipeline.Change[compactionbridge.Config](&config).ClientCompaction = compactionbridge.ClientCompactionAnswer
	messages := append(worked(), answer("I look at the test."))
	history = len(messages)
	raw := body(t, append(messages, user(asksForSummary))...)
	exchange = &pipelinetest.NewExchange(t, anthropic.New(), raw, pipelinetest.Options{
		Counter: counter(t), Config: config, Class: client.Class{Kind: client.Compaction, Client: client.ClaudeCode, Confidence: 1},
	}).View
	exchange.Lane.Projection, exchange.Lane.Met = &session.Projection{Number: 1, Covers: history, Chain: exchange.Conversation.Chain[history]}, history
	exchange.Request.MaxOutput = 0
	return exchange, history
}

// reply returns the event that tells of the answer to a request, and whether there is an answer.
func reply(t *testing.T, exchange *pipeline.View) (event pipeline.ReportEntry, isAnswered bool) {
	t.Helper()
	notes := func(context.Context, *pipeline.View, int, int) (string, error) {
		return "#2 Read(store.go) → ok", nil
	}
	draft, err := compactionbridge.New(counter(t), compactionbridge.Past{}).Answering(notes).Answer(t.Context(), exchange)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range draft.Report.Events {
		if event.Type == compactionbridge.Answered || event.Type == compactionbridge.Passed {
			return event, draft.Reply != nil
		}
	}
	t.Fatalf("no event tells of the request: %+v", draft.Report.Events)
	return event, false
}

// sized gives the history so many o200k tokens, all of them in its first message.
func sized(exchange *pipeline.View, history, tokens int) {
	for i := range exchange.Conversation.Digests[:history] {
		exchange.Conversation.Digests[i].Tokens = 0
	}
	exchange.Conversation.Digests[0].Tokens = tokens
}

// The client's limit counts the model's tokens: an answer that takes all of it is given, a token less and
// the provider is asked.
func TestAnswerFitsTheLimitInTheModelsTokens(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0.75, 1, 1.5} {
		exchange, history := asking(t)
		sized(exchange, history, 100_000)
		exchange.Limits.Factor = factor
		event, answered := reply(t, exchange)
		if !answered {
			t.Fatalf("without a limit: %+v", event)
		}
		tokens := int(factor * float64(event.Counts[compactionbridge.AnswerTokens]))
		for limit, want := range map[int]bool{tokens: true, tokens - 1: false} {
			exchange.Request.MaxOutput = limit
			if event, answered := reply(t, exchange); answered != want {
				t.Errorf("an answer of %d tokens, of which %d are allowed, is given: %t, %s", tokens, limit, answered, event.Reason)
			}
		}
	}
}

// An answer is shorter than the history that it stands for, of which the client's request is no part.
func TestAnswerIsShorterThanTheHistory(t *testing.T) {
	t.Parallel()
	exchange, history := asking(t)
	sized(exchange, history, 100_000)
	event, _ := reply(t, exchange)
	size := event.Counts[compactionbridge.AnswerTokens]
	if event.Counts[compactionbridge.HistoryTokens] != 100_000 || event.Counts[compactionbridge.CoveredTokens] != 100_000 || size == 0 {
		t.Errorf("counts %v", event.Counts)
	}
	exchange.Conversation.Digests[history].Tokens = 1_000
	for tokens, want := range map[int]bool{size: false, size + 1: true} {
		sized(exchange, history, tokens)
		if event, answered := reply(t, exchange); answered != want {
			t.Errorf("an answer of %d tokens for a history of %d is given: %t, %s", size, tokens, answered, event.Reason)
		}
	}
}

// What is ready stands for half of the history at least, and for no message behind it.
func TestAnswerStandsForHalfOfTheHistory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		covers, covered int // messages, and their tokens of 100,000
		summary         int // messages that a model's summary stands for
		want            bool
	}{
		"half":                          {3, 50_000, 0, true},
		"less than half":                {3, 49_999, 0, false},
		"a summary of more":             {1, 0, 3, true},
		"a compaction of more":          {3, 50_000, 1, true},
		"the request as well":           {13, 100_000, 0, false},
		"a summary of the request, too": {3, 50_000, 13, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exchange, history := asking(t)
			if history != 12 {
				t.Fatalf("%d messages", history)
			}
			sized(exchange, history, 0)
			covered := test.covered
			if test.summary > test.covers {
				covered = 50_000
			}
			exchange.Conversation.Digests[2].Tokens, exchange.Conversation.Digests[11].Tokens = covered, 100_000-covered
			exchange.Lane.Projection.Covers = test.covers
			if test.summary > 0 {
				exchange.Lane.Summary = &session.Summary{Covers: test.summary, Text: "Notes."}
			}
			if event, answered := reply(t, exchange); answered != test.want {
				t.Errorf("answered: %t, %s", answered, event.Reason)
			}
		})
	}
}
