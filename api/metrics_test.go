package api

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/rehydrator"
)

// counted returns what the counters without labels of some metrics stand at.
func counted(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if len(metric.GetLabel()) == 0 && metric.GetCounter() != nil {
				counts[family.GetName()] = int(metric.GetCounter().GetValue())
			}
		}
	}
	return counts
}

// What modules put back into prompts is counted: what came back piece by piece,
// recoveries by request.
func TestWhatComesBackIsCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	metrics.observe(&Event{Report: pipeline.Report{Injected: map[string]int{rehydrator.Name: 3, "patterns": 2}}})
	metrics.observe(&Event{Report: pipeline.Report{
		Injected: map[string]int{compactionbridge.Name: 1},
		Events:   []pipeline.Event{{Module: compactionbridge.Name, Type: compactionbridge.Recovered}},
	}})
	metrics.observe(&Event{})
	for name, want := range map[string]int{"palimpsest_rehydrated_total": 3, "palimpsest_bridge_recovered_total": 1} {
		if got := counted(t, registry)[name]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}
