package main

import (
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
)

const (
	spoolDir    = "unrecorded" // in the directory for waiting data
	spoolReplay = time.Second  // how often recording is retried
)

// openSpool opens the spool, which keeps exchanges on the local disk until they are recorded.
func openSpool(b base, keys *archive.Keys) (*spool.Spool, error) {
	kept, err := spool.Open(spool.Config{
		Dir: filepath.Join(b.config.waitingDir(), spoolDir), MaxBytes: spool.DefaultBytes, Keys: keys, Log: b.log, Now: b.now,
	})
	if err != nil {
		return nil, err
	}
	b.onClose(func() {
		if err := kept.Close(); err != nil {
			b.log.Warn("close the files of exchanges on the local disk", "error", err)
		}
	})
	b.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "palimpsest_unrecorded_exchanges", Help: "Exchanges that wait on the local disk to be recorded."},
			func() float64 { return float64(kept.Stats().Records) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "palimpsest_unrecorded_bytes", Help: "Bytes of the exchanges that wait on the local disk."},
			func() float64 { return float64(kept.Stats().Bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "palimpsest_exchanges_replayed_total", Help: "Exchanges that were recorded from the local disk, because the database had not taken them or their process was killed."},
			func() float64 { return float64(kept.Stats().Handed) }),
	)
	return kept, nil
}
