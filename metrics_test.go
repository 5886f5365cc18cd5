package palimpsest_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api"
	"palimpsest/pipeline/jobs/jobsdb"
)

// described collects the names of the metrics that are registered with it.
type described struct{ names map[string]bool }

func (d described) Register(collector prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 16)
	go func() {
		defer close(descriptions)
		collector.Describe(descriptions)
	}()
	for description := range descriptions {
		d.names[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(description.String())[1]] = true
	}

	return nil
}

func (d described) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		if err := d.Register(collector); err != nil {
			panic(err)
		}
	}
}

func (d described) Unregister(prometheus.Collector) bool { return false }

func TestOperationsPageListsExactlyTheMetricsOfTheProxy(t *testing.T) {
	t.Parallel()

	registered := described{names: map[string]bool{}}
	api.NewMetrics(registered)
	jobsdb.NewMetrics(registered)

	documented := map[string]bool{}
	metric := regexp.MustCompile(`palimpsest_[a-z_]+_(?:total|seconds|bytes|usd)\b`)
	for _, name := range metric.FindAllString(readFile(t, "docs/operations.md"), -1) {
		documented[name] = true
	}

	if got, want := sorted(documented), sorted(registered.names); !slices.Equal(got, want) {
		t.Errorf("docs/operations.md lists\n%v\nthe proxy registers\n%v", got, want)
	}
}
