package recorder

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"palimpsest/tenants"
)

// Metrics count recorded and lost data.
type Metrics struct {
	Archived prometheus.Counter // bytes of originals
	Errors   prometheus.Counter
	Dropped  prometheus.Counter // records
	Unkept   prometheus.Counter // exchanges

	redacted *prometheus.CounterVec
}

// NewMetrics registers a recorder's metrics with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(registry).NewCounter(prometheus.CounterOpts{Namespace: "palimpsest", Name: name, Help: help})
	}
	m := &Metrics{
		Archived: counter("archive_bytes_total", "Bytes of originals given to the archive."),
		Errors:   counter("archive_write_errors_total", "Writes to the archive that failed."),
		Dropped:  counter("usage_events_dropped_total", "Records lost because the database refused them, or the queue was full while it did or for five seconds, and the local disk had no room."),
		Unkept:   counter("exchanges_unkept_total", "Exchanges that the local disk did not take until they were recorded: they are lost if the process is killed."),
		redacted: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
			Namespace: "palimpsest", Name: "redacted_total", Help: "Pieces of personal data replaced in messages before they were stored, by kind.",
		}, []string{"kind"}),
	}
	for _, kind := range tenants.RedactionKinds() {
		m.redacted.WithLabelValues(string(kind)) // so that a rate starts at zero
	}
	return m
}

// Redact counts replaced pieces of personal data in archived messages, by kind.
func (m *Metrics) Redact(pieces map[string]int) {
	for kind, count := range pieces {
		m.redacted.WithLabelValues(kind).Add(float64(count))
	}
}
