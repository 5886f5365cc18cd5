package recorder

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count what was recorded, and what was not.
type Metrics struct {
	Archived prometheus.Counter // bytes of originals
	Errors   prometheus.Counter
	Dropped  prometheus.Counter // records
	Unkept   prometheus.Counter // exchanges
}

// NewMetrics registers a recorder's metrics with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(registry).NewCounter(prometheus.CounterOpts{Namespace: "palimpsest", Name: name, Help: help})
	}
	return &Metrics{
		Archived: counter("archive_bytes_total", "Bytes of originals given to the archive."),
		Errors:   counter("archive_write_errors_total", "Writes to the archive that failed."),
		Dropped:  counter("usage_events_dropped_total", "Records lost because the database refused them, or the queue was full while it did or for five seconds, and the local disk had no room."),
		Unkept:   counter("exchanges_unkept_total", "Exchanges that the local disk did not take until they were recorded: they are lost if the process is killed."),
	}
}
