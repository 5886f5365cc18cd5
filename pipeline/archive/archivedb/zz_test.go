package archivedb_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"palimpsest/pipeline/archive"
)

type tmpDoor struct{ db *gorm.DB }

func (d tmpDoor) InTenant(ctx context.Context, ws uuid.UUID, fn func(tx *gorm.DB) error) error {
	return d.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("SELECT set_config('app.workspace_id', ?, true)", ws.String()).Error; err != nil {
			return err
		}
		return fn(tx)
	})
}

func pgCPU() (ticks int) {
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		cmd, _ := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		if !strings.Contains(string(cmd), " p2 ") { continue }
		st, _ := os.ReadFile("/proc/" + d.Name() + "/stat")
		f := strings.Fields(string(st[strings.LastIndexByte(string(st), ')')+1:]))
		var u, s int
		fmt.Sscan(f[11], &u); fmt.Sscan(f[12], &s)
		ticks += u + s
	}
	return
}

func BenchmarkZZ(b *testing.B) {
	cfg, _ := pgxpool.ParseConfig("host=127.0.0.1 port=55444 user=app dbname=p2 sslmode=disable")
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	pool, err := pgxpool.NewWithConfig(b.Context(), cfg)
	if err != nil { b.Fatal(err) }
	defer pool.Close()
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: stdlib.OpenDBFromPool(pool)}), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	if err != nil { b.Fatal(err) }
	for _, size := range []int{500, 5_000, 50_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := newFixture(b, tmpDoor{g})
			shared := body(size)
			var next atomic.Int64
			var ru0, ru1 syscall.Rusage
			syscall.Getrusage(0, &ru0)
			p0 := pgCPU()
			b.RunParallel(func(pb *testing.PB) {
				lane := f.addLane(b, time.Now())
				for pb.Next() {
					list := make([]archive.Entry, 200)
					for i := range list {
						list[i] = entry(int(next.Add(1)), text(shared))
					}
					f.in(b, func(tx *gorm.DB) error { return f.archive.Put(tx, f.workspace, f.session, lane, list) })
				}
			})
			syscall.Getrusage(0, &ru1)
			n := float64(next.Load())
			cpu := float64(ru1.Utime.Nano()+ru1.Stime.Nano()-ru0.Utime.Nano()-ru0.Stime.Nano()) / 1e3 / n
			pg := float64(pgCPU()-p0) * 10_000 / n
			b.ReportMetric(cpu, "go-us/msg")
			b.ReportMetric(pg, "pg-us/msg")
			b.ReportMetric(2e6/(cpu+pg), "msg/s-on-2-cores")
			b.ReportMetric(2*float64(size)/(cpu+pg), "MB/s-on-2-cores")
			b.ReportMetric(n/b.Elapsed().Seconds(), "msg/s")
		})
	}
}
