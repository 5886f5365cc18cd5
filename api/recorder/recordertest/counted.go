package recordertest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Counted returns the values of the counters without labels.
func Counted(t *testing.T, registry *prometheus.Registry) map[string]int {
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
