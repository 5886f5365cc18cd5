package jobsdb

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/pipeline/jobs"
)

// How a job ended.
const (
	done      = "done"
	putOff    = "put off"    // by its handler
	givenBack = "given back" // the program ended
	failed    = "failed"     // will be retried
	givenUp   = "abandoned"
)

// Metrics count jobs. Their labels are kinds and outcomes, never a workspace.
type Metrics struct {
	jobs     *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics of jobs with registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "palimpsest", Name: "jobs_total", Help: "Jobs that this process ran, by how they ended.",
		}, []string{"kind", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "palimpsest", Name: "job_duration_seconds", Help: "Time that jobs took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10), // 1 ms to 4 min
		}, []string{"kind"}),
	}
	registry.MustRegister(m.jobs, m.duration)
	return m
}

// known initializes the counts of a kind to zero.
func (m *Metrics) known(kind jobs.Kind) {
	for _, outcome := range []string{done, putOff, givenBack, failed, givenUp} {
		m.jobs.WithLabelValues(string(kind), outcome)
	}
}

func (m *Metrics) ended(kind jobs.Kind, outcome string, took time.Duration) {
	m.jobs.WithLabelValues(string(kind), outcome).Inc()
	m.duration.WithLabelValues(string(kind)).Observe(took.Seconds())
}

// sqlStates counts jobs by kind in the states worth reporting. Each kind has its own queue.
const sqlStates = `SELECT queue, CASE state WHEN 'running' THEN 'running' WHEN 'discarded' THEN 'abandoned' ELSE 'waiting' END, count(*)
	FROM jobs.river_job WHERE state IN ('available', 'scheduled', 'retryable', 'running', 'discarded') GROUP BY 1, 2`

// countTimeout bounds the query when metrics are collected.
const countTimeout = 2 * time.Second

// Backlog counts the jobs in the database when metrics are collected.
type Backlog struct {
	pool *pgxpool.Pool
	desc *prometheus.Desc
	log  *slog.Logger
}

// NewBacklog registers the number of jobs in the database with registry.
func NewBacklog(registry prometheus.Registerer, pool *pgxpool.Pool, log *slog.Logger) *Backlog {
	b := &Backlog{pool: pool, log: log, desc: prometheus.NewDesc("palimpsest_jobs",
		"Jobs of the whole cluster by state.", []string{"kind", "state"}, nil)}
	registry.MustRegister(b)
	return b
}

// Describe implements prometheus.Collector.
func (b *Backlog) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- b.desc }

// Collect implements prometheus.Collector. It reports no values while the database is down.
func (b *Backlog) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	rows, err := b.pool.Query(ctx, sqlStates)
	if err != nil {
		b.log.WarnContext(ctx, "count jobs", "error", err)
		return
	}
	var kind, state string
	var count int64
	_, err = pgx.ForEachRow(rows, []any{&kind, &state, &count}, func() error {
		metrics <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, float64(count), kind, state)
		return nil
	})
	if err != nil {
		b.log.WarnContext(ctx, "count jobs", "error", err)
	}
}

// State is the number of jobs of all kinds in one state.
type State struct {
	State string // "running", "waiting", "abandoned"
	Jobs  int64
}

// States returns the number of jobs of the whole cluster in each state, without empty states.
func States(ctx context.Context, pool *pgxpool.Pool) ([]State, error) {
	rows, err := pool.Query(ctx, "SELECT state, sum(jobs)::bigint FROM ("+sqlStates+") AS counted (kind, state, jobs) GROUP BY 1 ORDER BY 1")
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	states, err := pgx.CollectRows(rows, pgx.RowToStructByPos[State])
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	return states, nil
}
