package ipc_test

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
)

// bench runs ipc on a body of about 800 KB in a window of so many tokens.
func bench(b *testing.B, limit int, change func(*pipelinetest.Options)) {
	b.Helper()
	counter := newCounter(b)
	talk := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Anthropic, Turns: 300, Parallel: true, Thinking: true, TargetTokens: 210_000})
	body := talk.Body(talk.Steps() - 1)
	options := pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default(), Limit: limit}
	change(&options)
	exchange := pipelinetest.NewExchange(b, codecs()[conversation.Anthropic], body, options)
	projection := exchange.Lane.Projection
	module := ipc.New(counter.Message)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	epochs := 0
	for b.Loop() {
		exchange.Lane.Projection, exchange.Report = projection, pipeline.Report{}
		if err := pipelinetest.Process(b.Context(), module, exchange); err != nil {
			b.Fatal(err)
		}
		epochs += exchange.Report.Archived
	}
	b.ReportMetric(float64(len(exchange.Conversation.Digests)), "messages")
}

func BenchmarkUnderTarget(b *testing.B) {
	bench(b, 1_000_000, func(*pipelinetest.Options) {})
}

func BenchmarkFrozen(b *testing.B) {
	bench(b, 200_000, func(options *pipelinetest.Options) { options.Projection = frozen(b, *options) })
}

func BenchmarkEpochToL1(b *testing.B) { bench(b, 250_000, func(*pipelinetest.Options) {}) }

func BenchmarkEpochToL3(b *testing.B) { bench(b, 40_000, func(*pipelinetest.Options) {}) }

// frozen returns the projection that stands at an earlier step of the benchmark's
// session.
func frozen(b *testing.B, options pipelinetest.Options) *session.Projection {
	b.Helper()
	talk := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Anthropic, Turns: 300, Parallel: true, Thinking: true, TargetTokens: 210_000})
	exchange := pipelinetest.NewExchange(b, codecs()[conversation.Anthropic], talk.Body(talk.Steps()-2), options)
	pipeline.NewChain(ipc.New(options.Counter.Message)).Process(b.Context(), exchange)
	if exchange.Lane.Projection == nil {
		b.Fatalf("no projection: %+v", exchange.Report)
	}
	return exchange.Lane.Projection
}
