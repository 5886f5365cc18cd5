package inspection

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/migrations/dbtest"
	"palimpsest/migrations/partitions"
)

// S27: a partition that has become too large, because no process makes the next one, is shown to operators, by
// palimpsest check and by a metric.
func TestOverfullPartitionIsShown(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	parts := watched(database, nil)
	rows := func() (value float64) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(parts)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "palimpsest_request_partition_rows" {
				value = family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return value
	}
	for _, test := range []struct {
		rows   int
		status verdict
	}{{partitions.Large, verdictOK}, {3 * partitions.Large, verdictWarn}} {
		if _, err := database.Owner(t).Exec(t.Context(), "UPDATE pg_class SET reltuples = $1 WHERE oid = 'exchanges_first'::regclass", float32(test.rows)); err != nil {
			t.Fatal(err)
		}
		found := parts.found(t)["Partitions"]
		checked := checkPartitions(t.Context(), database.OwnerURL)
		if found.OK != (test.status == verdictOK) || checked.Status != test.status || rows() != float64(test.rows) {
			t.Errorf("%d requests: operators see %+v, the command says %+v, the metric %.0f", test.rows, found, checked, rows())
		}
		if !found.OK && (!found.Late || !strings.Contains(found.Text, "exchanges_first has 150 million requests")) {
			t.Errorf("operators see %+v", found)
		}
	}
}
