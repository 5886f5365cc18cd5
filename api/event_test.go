package api

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
)

func TestAnExchangeIsBridgedWhereSomethingWasPutBack(t *testing.T) {
	t.Parallel()
	for want, events := range map[bool][]pipeline.ReportEntry{
		true:  {{Module: "ipc", Type: "completed"}, {Module: compactionbridge.Name, Type: compactionbridge.Recovered}},
		false: {{Module: compactionbridge.Name, Type: "skipped"}, {Module: "ipc", Type: compactionbridge.Recovered}},
	} {
		event := RequestLog{Report: pipeline.Report{Events: events}, money: money{NetMicroUSD: 3, UnreadMicroUSD: 5, RewrittenMicroUSD: 7}}
		if got := event.exchange(); got.Prompt.Bridged != want || got.Cost.NetMicroUSD != 3 || got.Cost.UnreadMicroUSD != 5 || got.Cost.RewrittenMicroUSD != 7 {
			t.Errorf("%+v: bridged is %t", events, got.Prompt.Bridged)
		}
	}
}
