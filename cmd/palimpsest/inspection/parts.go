// Package inspection checks the parts of an installation, for pages, metrics and the command check.
package inspection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/tenants"
)

// Times of the checks.
const (
	Interval     = 10 * time.Second // between checks of the installation's parts
	checkTimeout = 3 * time.Second  // for one part
	probeName    = "palimpsest-health-probe"

	slowDatabase = 500 * time.Millisecond // a slower answer needs attention
	lateRecorder = 30 * time.Second       // and so do exchanges unrecorded for longer
	lateStandby  = time.Minute
	lateWork     = 5 * time.Minute // originals to move, lanes to index
)

// finding is the result of checking one part of the installation.
type finding struct {
	check  tenants.Check
	values []prometheus.Metric
	field  string // in the answer of /readyz; "" if it does not list the part
}

// probe checks one part of the installation.
type probe func(ctx context.Context) finding

// Installation periodically checks the parts of the installation. Pages and metrics read the last result
// without waiting.
type Installation struct {
	now     func() time.Time
	version string

	mu       sync.Mutex
	probes   []probe
	looks    int       // begun so far
	shown    int       // number of the look that made findings
	findings []finding // of the newest finished look
}

// New returns an installation without parts, which a version of the program runs.
func New(now func() time.Time, version string) *Installation {
	return &Installation{now: now, version: version}
}

// add adds a probe for a part.
func (i *Installation) add(probe probe) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.probes = append(i.probes, probe)
}

// Look checks all parts concurrently, so that a hanging part does not delay the others. It drops its result
// if a later look has finished first.
func (i *Installation) Look(ctx context.Context) {
	i.mu.Lock()
	probes := i.probes
	i.looks++
	look := i.looks
	i.mu.Unlock()
	found := make([]finding, len(probes))
	var looks sync.WaitGroup
	for at, probe := range probes {
		looks.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			found[at] = probe(ctx)
		})
	}
	looks.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	if look > i.shown {
		i.shown, i.findings = look, found
	}
}

// latest returns the findings of the newest look.
func (i *Installation) latest() []finding {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.findings
}

// States calls yield with the field in the answer of /readyz of each part that has one, and whether the part answers.
func (i *Installation) States(yield func(field string, up bool)) {
	for _, part := range i.latest() {
		if part.field != "" {
			yield(part.field, part.check.OK)
		}
	}
}

// checks returns the findings of the newest look, for the operator.
func (i *Installation) checks() []tenants.Check {
	found := i.latest()
	checks := make([]tenants.Check, len(found), len(found)+1)
	for at, one := range found {
		checks[at] = one.check
	}
	return append(checks, tenants.Check{Name: "Version", OK: true, Text: i.version})
}

// Describe implements prometheus.Collector. It describes no metrics because the set depends on the parts.
func (i *Installation) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (i *Installation) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range i.latest() {
		for _, value := range one.values {
			metrics <- value
		}
	}
}

// NewChecks checks the parts of the installation now, for its operator.
func (i *Installation) NewChecks(ctx context.Context) []tenants.Check {
	i.Look(ctx)
	return i.checks()
}

// LatestChecks returns the findings of the newest look, without waiting for another.
func (i *Installation) LatestChecks(context.Context) []tenants.Check { return i.checks() }

// The metrics of the parts.
var (
	databaseAnswer   = gauge("palimpsest_database_answer_seconds", "Time that the database took for its newest answer.")
	bucketUp         = gauge("palimpsest_bucket_up", "1 if the bucket answered when it was last asked, else 0.")
	redisUp          = gauge("palimpsest_redis_up", "1 if Redis answered when it was last asked, else 0.")
	moverLag         = gauge("palimpsest_mover_lag_seconds", "Since when the oldest original waits to be moved into the bucket.")
	indexerLag       = gauge("palimpsest_indexer_lag_seconds", "Since when the oldest lane waits to be indexed for search.")
	recorderLag      = gauge("palimpsest_recorder_lag_seconds", "Since when the oldest exchange of this process waits to be recorded.")
	replicationLag   = gauge("palimpsest_replication_lag_seconds", "How far a standby of the database is behind.", "standby")
	replicationBytes = gauge("palimpsest_replication_lag_bytes", "Bytes of the write-ahead log that a standby of the database has yet to replay.", "standby")
	partitionCount   = gauge("palimpsest_request_partitions", "Partitions of the table of requests.")
	partitionRows    = gauge("palimpsest_request_partition_rows", "Requests in the partition that takes those of now, as the database estimates them.")
)

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func valueOf(gauge *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(gauge, prometheus.GaugeValue, value, labels...)
}

// check reports whether a part answers. It hides the cause, which may contain addresses.
func check(name, answers, means string, err error) tenants.Check {
	if err != nil {
		return tenants.Check{Name: name, Text: "does not answer", Means: means}
	}
	return tenants.Check{Name: name, OK: true, Text: answers}
}

// answering reports whether a part answers, with a metric for that.
func answering(field string, gauge *prometheus.Desc, checked tenants.Check) finding {
	up := 0.0
	if checked.OK {
		up = 1
	}
	return finding{check: checked, values: []prometheus.Metric{valueOf(gauge, up)}, field: field}
}

// lagging reports on a backlog whose oldest entry waits since a time, zero if the backlog is empty.
func (i *Installation) lagging(name, means string, gauge *prometheus.Desc, most time.Duration, since time.Time, err error) finding {
	if err != nil {
		return finding{check: tenants.Check{Name: name, Text: "is not known", Means: "The database does not say. " + means}}
	}
	lag := time.Duration(0)
	if !since.IsZero() {
		lag = max(0, i.now().Sub(since))
	}
	return finding{check: behind(name, means, lag, most), values: []prometheus.Metric{valueOf(gauge, lag.Seconds())}}
}

// behind reports how far a part lags.
func behind(name, means string, lag, most time.Duration) tenants.Check {
	checked := tenants.Check{Name: name, OK: true, Text: "up to date"}
	if lag >= time.Second {
		checked.Text = lasts(lag) + " behind"
	}
	if lag > most {
		checked.OK, checked.Late, checked.Means = false, true, means
	}
	return checked
}

// lasts formats a duration.
func lasts(length time.Duration) string {
	switch {
	case length < time.Second:
		return fmt.Sprintf("%d ms", length.Milliseconds())
	case length < 2*time.Minute:
		return fmt.Sprintf("%d s", int(length.Seconds()))
	case length < 2*time.Hour:
		return fmt.Sprintf("%d min", int(length.Minutes()))
	}
	return fmt.Sprintf("%d h", int(length.Hours()))
}

// Interface guard.
var _ prometheus.Collector = (*Installation)(nil)
