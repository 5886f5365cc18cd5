package ipc_test

import (
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
)

// cold runs ipc on the first request of a lane whose cache has gone cold, a body of
// about 800 KB: with the epoch planned ahead or not.
func cold(b *testing.B, planned bool) {
	b.Helper()
	counter := newCounter(b)
	talk := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Anthropic, Turns: 300, Parallel: true, Thinking: true, TargetTokens: 210_000})
	options := pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default(), Limit: 330_000, Known: map[string]conversation.Digest{}}
	module := ipc.New(counter.Message)
	last := pipelinetest.NewExchange(b, codecs()[conversation.Anthropic], talk.Body(talk.Steps()-2), options)
	last.Lane.NextProjection = 1
	plan, err := module.Plan(b.Context(), &last.View)
	if err != nil {
		b.Fatal(err)
	}
	exchange := pipelinetest.NewExchange(b, codecs()[conversation.Anthropic], talk.Body(talk.Steps()-1), options)
	exchange.Lane.NextProjection, exchange.Lane.Now = 1, noon()
	exchange.Lane.Heat = session.CacheState{At: noon().Add(-time.Hour), TTL: session.ShortTTL, Model: exchange.Request.Model}
	if planned {
		exchange.Lane.Plan = plan
	}
	b.ReportAllocs()
	for b.Loop() {
		exchange.Lane.Projection, exchange.Report = nil, pipeline.Report{}
		if err := pipelinetest.Process(b.Context(), module, exchange); err != nil || exchange.Lane.Projection == nil {
			b.Fatalf("%+v, %v", exchange.Report, err)
		}
	}
}

func BenchmarkColdEpochPlannedAhead(b *testing.B) { cold(b, true) }

func BenchmarkColdEpochPlannedInTheRequest(b *testing.B) { cold(b, false) }
