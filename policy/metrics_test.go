package policy_test

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api"
	"palimpsest/api/connections"
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

func TestMonitoringPageListsExactlyTheMetricsOfTheProxy(t *testing.T) {
	t.Parallel()

	registered := described{names: map[string]bool{}}
	api.NewMetrics(registered)
	jobsdb.NewMetrics(registered)
	registered.MustRegister(connections.NewLimiter(connections.Limits{}, nil, nil).Metrics())

	documented := map[string]bool{}
	for _, name := range namedInTheProgram(t, `[a-z_]+_(?:total|seconds|bytes|usd)`) {
		registered.names[name] = true
	}
	metric := regexp.MustCompile(`palimpsest_[a-z_]+_(?:total|seconds|bytes|usd)\b`)
	for _, name := range metric.FindAllString(readFile(t, "docs/monitoring.md"), -1) {
		documented[name] = true
	}

	if got, want := sorted(documented), sorted(registered.names); !slices.Equal(got, want) {
		t.Errorf("docs/monitoring.md lists\n%v\nthe proxy registers\n%v", got, want)
	}
}

// namedInTheProgram returns the metrics that the program registers itself, as its source
// names them, whose names end as the pattern says.
func namedInTheProgram(t *testing.T, ending string) []string {
	t.Helper()
	main, err := fs.Glob(repository, "cmd/palimpsest/*.go")
	below, belowErr := fs.Glob(repository, "cmd/palimpsest/*/*.go")
	files := slices.Concat(main, below)
	if err := errors.Join(err, belowErr); err != nil || len(main) == 0 || len(below) == 0 {
		t.Fatalf("%d and %d files, %v", len(main), len(below), err)
	}
	var names []string
	described := regexp.MustCompile(`gauge\("(palimpsest_` + ending + `)"`)
	named := regexp.MustCompile(`(?:Namespace: "(palimpsest)",\s*)?Name:\s*"((?:palimpsest_)?` + ending + `)"`)
	for _, file := range files {
		for _, match := range described.FindAllStringSubmatch(readFile(t, file), -1) {
			names = append(names, match[1])
		}
		for _, match := range named.FindAllStringSubmatch(readFile(t, file), -1) {
			names = append(names, strings.TrimPrefix(match[1]+"_"+match[2], "_"))
		}
	}
	return names
}
