package main

import (
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/spool"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/journal"
)

const (
	journalDir    = "journal"   // in the directory for waiting data
	journalReplay = time.Second // how often the database is offered the waiting compactions
)

// openJournal opens the journal, which keeps compactions on the local disk while the database is away.
func openJournal(b base, of stored, lanes *session.Resolver) (*journal.Journal, error) {
	kept, err := journal.New(journal.Config{
		IsAway: spool.IsAway,
		Dir:    filepath.Join(b.config.waitingDir(), journalDir), MaxBytes: journal.DefaultBytes, Store: of.sessions, Keys: of.archiveKeys,
		Log: b.log, Now: b.now, Outage: b.health.outage, Peers: peers(b),
		Overtaken: func(lane uuid.UUID) { lanes.Changed(lane, 0) },
	})
	if err != nil {
		return nil, err
	}
	b.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "palimpsest_journal_epochs", Help: "Compactions that wait on the local disk for the database."},
			func() float64 { return float64(kept.Stats().Entries) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "palimpsest_journal_bytes", Help: "Bytes of the compactions that wait on the local disk."},
			func() float64 { return float64(kept.Stats().Bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "palimpsest_journal_kept_total", Help: "Compactions that were kept on the local disk because the database did not take them."},
			func() float64 { return float64(kept.Stats().Kept) }),
	)
	lanes.Consult(kept.Shown)
	b.every(journalReplay, kept.Replay)
	return kept, nil
}

// peers returns the store through which processes share data that waits for the database. It is nil without
// Redis.
func peers(b base) *journal.Peers {
	if b.redis == nil {
		return nil
	}
	return journal.NewPeers(b.redis, b.now)
}
