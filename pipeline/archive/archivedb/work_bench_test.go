package archivedb_test

import (
	"syscall"
	"testing"
	"time"

	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/reporttest"
)

// BenchmarkIndexPending indexes lanes of eight workspaces that have a turn each which is new.
func BenchmarkIndexPending(b *testing.B) {
	const workspaces, lanes, turn = 8, 32, 4
	database := dbtest.New(b)
	all := make([]*fixture, workspaces)
	for i := range all {
		all[i] = newFixture(b, database.DB)
	}
	index := all[0].index()
	used := cpu{}
	indexed, began := 0, time.Duration(0)
	for b.Loop() {
		for _, f := range all {
			for range lanes {
				lane := f.addLane(b, time.Now())
				list := make([]archive.Entry, turn)
				for i := range list {
					list[i] = entry(i, text(body(2_000)))
				}
				f.in(b, func(tx *gorm.DB) error { return f.archive.Put(tx, f.workspace, f.session, lane, list) })
			}
		}
		before, at := cpuOf(b, database), time.Now()
		for {
			done, err := index.IndexPending(b.Context(), 64)
			if err != nil {
				b.Fatal(err)
			}
			if done == 0 {
				break
			}
		}
		used = used.plus(cpuOf(b, database).minus(before))
		began += time.Since(at)
		indexed += workspaces * lanes
	}
	used.report(b, "lane", indexed, began)
}

// cpu is time that a processor worked.
type cpu struct{ ours, database time.Duration }

func (c cpu) plus(other cpu) cpu { return cpu{c.ours + other.ours, c.database + other.database} }

func (c cpu) minus(other cpu) cpu { return cpu{c.ours - other.ours, c.database - other.database} }

// report tells how much of one thing came to pass, by the clock and by the processor's time.
func (c cpu) report(b *testing.B, thing string, count int, took time.Duration) {
	b.Helper()
	b.ReportMetric(float64(count)/took.Seconds(), thing+"s/s")
	b.ReportMetric(float64(count)/(c.ours+c.database).Seconds(), thing+"s/s/core")
	b.ReportMetric(float64(c.ours.Microseconds())/float64(count), "µs-ours/"+thing)
	b.ReportMetric(float64(c.database.Microseconds())/float64(count), "µs-database/"+thing)
}

// cpuOf returns the processor's time of this process and of the database's, so far.
func cpuOf(b *testing.B, database *dbtest.Database) cpu {
	b.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	used := cpu{ours: time.Duration(own.Utime.Nano() + own.Stime.Nano())}
	var backend int
	if err := database.Owner(b).QueryRow(b.Context(), "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		b.Fatal(err)
	}
	postmaster := reporttest.Parent(backend)
	if postmaster == 0 {
		b.Skip("the database is not on this machine")
	}
	used.database = reporttest.FamilyCPUTime(postmaster)
	return used
}
