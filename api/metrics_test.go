package api

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/recorder/recordertest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
)

// What modules put back into prompts is counted: what came back piece by piece,
// recoveries by request.
func TestWhatComesBackIsCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	metrics.observe(&RequestLog{Report: pipeline.Report{Injected: map[string]int{rehydrator.Name: 3, "patterns": 2}}})
	metrics.observe(&RequestLog{Report: pipeline.Report{
		Injected: map[string]int{compactionbridge.Name: 1},
		Events:   []pipeline.ReportEntry{{Module: compactionbridge.Name, Type: compactionbridge.Recovered}},
	}})
	metrics.observe(&RequestLog{})
	for name, want := range map[string]int{"palimpsest_rehydrated_total": 3, "palimpsest_bridge_recovered_total": 1} {
		if got := recordertest.Counted(t, registry)[name]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

func TestCertificatesAreCountedByWhetherTheyAreComplete(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	for _, reason := range []string{ipc.Complete, ipc.Incomplete, ipc.Complete} {
		metrics.observe(&RequestLog{Report: pipeline.Report{Events: []pipeline.ReportEntry{
			{Module: ipc.Name, Type: ipc.Certified, Reason: reason}, {Module: "another", Type: ipc.Certified, Reason: reason},
		}}})
	}
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range gathered {
		if family.GetName() == "palimpsest_compaction_certificates_total" {
			for _, metric := range family.GetMetric() {
				counted[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	if counted["true"] != 2 || counted["false"] != 1 {
		t.Errorf("counted %v", counted)
	}
}
