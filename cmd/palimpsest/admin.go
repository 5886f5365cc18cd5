package main

import (
	"context"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTimeout bounds the question whether the database answers.
const readyTimeout = 2 * time.Second

// health says whether the program should get requests.
type health struct {
	draining atomic.Bool
	ping     func(context.Context) error
}

// adminHandler serves what operators and their machines read: profiles only if they are
// asked for, since they hold what the process has in memory and cost it time.
func adminHandler(health *health, registry *prometheus.Registry, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, request *http.Request) {
		if health.draining.Load() {
			answer(w, http.StatusServiceUnavailable, "draining")
			return
		}
		ctx, cancel := context.WithTimeout(request.Context(), readyTimeout)
		defer cancel()
		if err := health.ping(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable, "database does not answer")
			return
		}
		answer(w, http.StatusOK, "ok")
	})
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
