package rehydrator_test

import (
	"encoding/json"
	"testing"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

func newCounter(t testing.TB) *tokens.Counter {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// bodyOf returns a request of Anthropic's with messages and a typed text behind them.
func bodyOf(t testing.TB, messages []conversation.Message, typed string) []byte {
	t.Helper()
	body, err := memorybench.Body(messages, typed)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func said(role conversation.Role, text string) conversation.Message {
	return conversation.Message{Role: role, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}}
}

// compressed returns an exchange whose prompt shows no message before shown.
func compressed(t testing.TB, counter *tokens.Counter, codec wire.Codec, body []byte, shown int) *pipeline.Exchange {
	t.Helper()
	exchange := pipelinetest.NewExchange(t, codec, body, pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default()})
	if shown > 0 {
		record := json.RawMessage(`{"role":"user","content":"[AUTO CONTEXT COMPRESSION]\nnothing"}`)
		exchange.Lane.Projection = &session.Projection{
			Number: 1, Covers: shown, Chain: exchange.Conversation.Chain[shown],
			Parts: []session.Part{{From: 0, To: shown, Level: 3, Raw: record, Tokens: 20, Messages: 1}},
		}
	}
	return exchange
}

// process runs the module and returns what came back.
func process(t testing.TB, exchange *pipeline.Exchange, archive archive.Searcher) (text string, items []string) {
	t.Helper()
	pipeline.NewChain(rehydrator.New(archive)).Process(t.Context(), withModules(exchange))
	for _, event := range exchange.Report.Events {
		if event.Type == "failed" {
			t.Fatalf("%+v", event)
		}
	}
	inserts := exchange.Injected(rehydrator.Name)
	if len(inserts) == 0 {
		return "", nil
	}
	newest := inserts[len(inserts)-1]
	return newest.Text, newest.Items
}

func withModules(exchange *pipeline.Exchange) *pipeline.Exchange {
	exchange.Config.Modules = []string{rehydrator.Name}
	return exchange
}

var codec = anthropic.New() //nolint:gochecknoglobals // has no state
