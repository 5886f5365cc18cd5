package main

import (
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/journal"
	"palimpsest/pipeline/session/sessiondb"
)

const (
	journalDir    = "journal"   // in the data directory
	journalReplay = time.Second // how often the database is offered what waits
)

// openJournal opens what keeps compactions on the local disk while the database is away.
func (p *program) openJournal(store *sessiondb.Store, keys *archive.Keys, lanes *session.Resolver, absence *session.Absence, registry prometheus.Registerer) error {
	kept, err := journal.New(journal.Config{
		Dir: filepath.Join(p.config.DataDir, journalDir), MaxBytes: journal.DefaultBytes, Store: store, Keys: keys, Log: p.log, Now: p.now, Absence: absence,
		Overtaken: func(lane uuid.UUID) { lanes.Changed(lane, 0) },
	})
	if err != nil {
		return err
	}
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "palimpsest_journal_epochs", Help: "Compactions that wait on the local disk for the database."},
			func() float64 { return float64(kept.Stats().Entries) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "palimpsest_journal_bytes", Help: "Bytes of the compactions that wait on the local disk."},
			func() float64 { return float64(kept.Stats().Bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "palimpsest_journal_kept_total", Help: "Compactions that were kept on the local disk because the database did not take them."},
			func() float64 { return float64(kept.Stats().Kept) }),
	)
	p.journal = kept
	p.every(journalReplay, kept.Replay)
	return nil
}
