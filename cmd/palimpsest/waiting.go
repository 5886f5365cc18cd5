package main

import (
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
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
		Dir:    filepath.Join(b.Config.WaitingDir(), journalDir), MaxBytes: journal.DefaultBytes, Store: of.sessions, Keys: of.archiveKeys,
		Log: b.Log, Now: b.Now, Outage: b.health.outage, Peers: peers(b),
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
	b.Every(journalReplay, kept.Replay)
	return kept, nil
}

// peers returns the store through which processes share data that waits for the database. It is nil without
// Redis.
func peers(b base) *journal.Peers {
	if b.redis == nil {
		return nil
	}
	return journal.NewPeers(b.redis, b.Now)
}

const (
	spoolDir    = "unrecorded" // in the directory for waiting data
	spoolReplay = time.Second  // how often recording is retried
)

// openSpool opens the spool, which keeps exchanges on the local disk until they are recorded.
func openSpool(b base, keys *archive.Keys) (*spool.Spool, error) {
	kept, err := spool.Open(spool.Config{
		Dir: filepath.Join(b.Config.WaitingDir(), spoolDir), MaxBytes: spool.DefaultBytes, Keys: keys, Log: b.Log, Now: b.Now,
	})
	if err != nil {
		return nil, err
	}
	b.OnClose(func() {
		if err := kept.Close(); err != nil {
			b.Log.Warn("close the files of exchanges on the local disk", "error", err)
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
