package ipc_test

import (
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
)

// BenchmarkBreakEvenDecision is what the rule takes with a request of a thousand turns,
// in which an hour's cache makes a compaction dearer than what has been read so far.
func BenchmarkBreakEvenDecision(b *testing.B) {
	for _, trigger := range []string{ipc.TriggerWindow, ipc.TriggerBreakEven} {
		b.Run(trigger, func(b *testing.B) {
			u := newUsed(b, 100*million, func(config *ipc.Config) {
				config.Trigger, config.PreserveTokens, config.PreserveLastTurns = trigger, 0, 100
			})
			u.heat = session.CacheState{At: noon(), TTL: session.LongTTL, Position: 2_000, Model: "claude-sonnet-4-5"}
			exchange := u.send(b, time.Second, grown(1_000))
			exchange.Lane.Projection, exchange.Report = nil, pipeline.Report{}
			exchange.Lane.Attempts = session.Attempts{At: noon(), Reason: "cost_gate", Size: exchange.Size(nil), Limit: exchange.Limits.Limit}
			module := ipc.New(newCounter(b).Message)
			b.ResetTimer()
			for b.Loop() {
				if err := pipelinetest.Process(b.Context(), module, exchange); err != nil || exchange.Lane.Projection != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
