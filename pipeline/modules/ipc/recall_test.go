package ipc_test

import (
	"fmt"
	"os"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/sessiontest"
)

// recalls are what projections of one session or more keep: of the identifiers that any
// later turn uses, and of those that turns use which nobody knew yet.
type recalls struct{ all, future pipelinetest.Recall }

func (r *recalls) add(other recalls) {
	r.all, r.future = r.all.Add(other.all), r.future.Add(other.future)
}

func (r *recalls) log(t *testing.T, name string) {
	t.Helper()
	kept, first := r.all.Share()
	future, firstFuture := r.future.Share()
	t.Logf("%-28s %5d wanted, kept %4.1f %% against %4.1f %% in %d and %d tokens; of %d unforeseen ones %4.1f %% against %4.1f %%", name,
		r.all.Wanted, 100*kept, 100*first, r.all.Tokens, r.all.FirstTokens, r.future.Wanted, 100*future, 100*firstFuture)
}

// recallOf measures the projection that ipc makes of the first part of a session in a
// window of a share of what that part takes.
func recallOf(t *testing.T, counter *tokens.Counter, codec wire.Codec, body []byte, part, window float64) recalls {
	t.Helper()
	requests := pipelinetest.Grow(t, codec, body)
	request := requests[int(float64(len(requests)-1)*part)]
	size := pipelinetest.NewExchange(t, codec, request, pipelinetest.Options{Counter: counter}).Size(nil)
	exchange := pipelinetest.NewExchange(t, codec, request, pipelinetest.Options{
		Counter: counter, Config: modules.Catalog().Default(), Limit: int(window * float64(size)),
	})
	pipeline.NewChain(ipc.New(counter.Message)).Process(t.Context(), exchange)
	if exchange.Lane.Projection == nil {
		return recalls{}
	}
	var session []conversation.Message
	for _, raw := range elementsOf(t, codec, body) {
		message, err := codec.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		session = append(session, message)
	}
	var measured recalls
	var err error
	of := pipelinetest.Shortened{Codec: codec, Session: fidelity.NamesOf(session), Sent: len(exchange.Conversation.Digests), Turns: exchange.Conversation.Turns, Projection: exchange.Lane.Projection}
	if measured.all, err = pipelinetest.RecallOf(of, counter.Count); err != nil {
		t.Fatal(err)
	}
	of.Since = of.Sent
	if measured.future, err = pipelinetest.RecallOf(of, counter.Count); err != nil {
		t.Fatal(err)
	}
	return measured
}

// exceeds reports a projection that keeps no clearly larger share than first sentences.
func (r *recalls) exceeds(t *testing.T, margin, ofFuture float64) {
	t.Helper()
	kept, first := r.all.Share()
	future, firstFuture := r.future.Share()
	if kept < first+margin || future < firstFuture+ofFuture || r.all.FirstTokens < r.all.Tokens {
		t.Errorf("kept %.3f against %.3f in %d and %d tokens, of unforeseen ones %.3f against %.3f",
			kept, first, r.all.Tokens, r.all.FirstTokens, future, firstFuture)
	}
}

// D5: a projection keeps more of what later turns need than first sentences of the
// same size, of what they were known to need and of what nobody knew yet.
func TestMoreIdentifiersAreKeptThanByFirstSentences(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	for window, margin := range map[float64]float64{0.6: 0.2, 0.12: 0.15} {
		var sum recalls
		for seed, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses} {
			session := sessiontest.Generate(uint64(seed), sessiontest.Options{Format: format, Turns: 150, Parallel: true, ToolErrors: true, TargetTokens: 90_000})
			sum.add(recallOf(t, counter, codecs()[format], session.Body(session.Steps()-1), 0.8, window))
		}
		sum.log(t, fmt.Sprintf("generated, window of %.0f %%", 100*window))
		sum.exceeds(t, margin, 0.1)
	}
}

// D5
func TestMoreIdentifiersOfRecordedSessionsAreKept(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it compacts every recorded session twice; TestMoreIdentifiersAreKeptThanByFirstSentences does the same with generated ones")
	counter := newCounter(t)
	for window, margin := range map[float64]float64{0.6: 0.16, 0.2: 0.1} {
		var sum recalls
		for suffix, codec := range map[string]wire.Codec{"anthropic": anthropic.New(), "openai": openaichat.New()} {
			for _, file := range sharedtest.Files(t, "data/transcripts/cc-single-*."+suffix+".json") {
				body, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				sum.add(recallOf(t, counter, codec, body, 0.8, window))
			}
		}
		sum.log(t, fmt.Sprintf("recorded, window of %.0f %%", 100*window))
		sum.exceeds(t, margin, 0.1)
	}
}
