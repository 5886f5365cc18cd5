package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/pipeline/archive/archivedb"
)

// volume reports the size of the archive by place, as of the end of the last pass.
type volume struct{ pending, segments, bytes, dead prometheus.Gauge }

func newVolume(registry prometheus.Registerer) volume {
	v := volume{
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_pending_objects", Help: "Archived messages that are not in the bucket yet, at the end of the last pass.",
		}),
		segments: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_segments", Help: "Objects of the bucket that hold archived messages.",
		}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_segment_bytes", Help: "Bytes of the segments in the bucket.",
		}),
		dead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_archive_dead_bytes", Help: "Bytes of the segments that belong to deleted messages and are yet to be taken out.",
		}),
	}
	registry.MustRegister(v.pending, v.segments, v.bytes, v.dead)
	return v
}

func (v volume) set(now archivedb.Volume) {
	v.pending.Set(float64(now.Pending))
	v.segments.Set(float64(now.Segments))
	v.bytes.Set(float64(now.Bytes))
	v.dead.Set(float64(now.Dead))
}
