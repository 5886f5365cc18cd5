package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"palimpsest/cmd/palimpsest/inspection"
	"palimpsest/pipeline/session"
)

const (
	databaseCheck   = 2 * time.Second // between checks of the database
	databaseTimeout = 2 * time.Second // for its answer
)

// health holds the state of a database and of the other parts of its installation.
type health struct {
	away   atomic.Bool // the last check failed
	ping   func(context.Context) error
	outage *session.Outage // of the database
	parts  *inspection.Installation
}

// newHealth returns the health of a program whose database answers.
func newHealth(ping func(context.Context) error, outage *session.Outage, registry prometheus.Registerer, now func() time.Time) *health {
	h := &health{ping: ping, outage: outage, parts: inspection.New(now, version())}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "palimpsest_database_up", Help: "1 if the database answered when it was last asked, else 0.",
	}, func() float64 {
		if h.away.Load() {
			return 0
		}
		return 1
	}))
	registry.MustRegister(h.parts)
	return h
}

// watch returns the health of a program on a database, which it checks periodically.
func watch(b base) *health {
	h := newHealth(b.db.Ping, session.NewOutage(b.Now), b.registry, b.Now)
	h.away.Store(b.away != nil)
	b.Every(databaseCheck, h.look)
	h.parts.WatchDatabase(b.db)
	h.parts.WatchPartitions(b.db.WorkPool().Query)
	h.parts.WatchRedis(b.redis)
	b.Every(inspection.Interval, h.parts.Look)
	return h
}

// look checks whether the database answers.
func (h *health) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	err := h.ping(ctx)
	h.away.Store(err != nil)
	if err == nil {
		h.outage.Note(nil)
	}
}

// ready answers whether the program should get requests, and lists the state of its parts. A program stays
// ready without its database because it can still proxy; otherwise one outage would take out every replica.
func (p *program) ready(w http.ResponseWriter, _ *http.Request) {
	status, is := http.StatusOK, "ready"
	if p.draining.Load() {
		status, is = http.StatusServiceUnavailable, "draining"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "{%q:%q,%s}\n", "status", is, p.sites.fields())
}

// fields returns members of a JSON object with the state of each part.
func (h *health) fields() string {
	var fields strings.Builder
	fmt.Fprintf(&fields, "%q:%q", "database", upOrDown(!h.away.Load()))
	h.parts.States(func(field string, up bool) { fmt.Fprintf(&fields, ",%q:%q", field, upOrDown(up)) })
	return fields.String()
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// adminHandler serves the endpoints for operators and monitoring. It serves profiles only on request,
// because they expose memory contents and cost time.
func adminHandler(ready http.HandlerFunc, registry *prometheus.Registry, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
