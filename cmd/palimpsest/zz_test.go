package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providertest"
	"palimpsest/migrations/dbtest"
)

func TestZZ(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		_, _ = io.WriteString(w, `{"content":[]}`)
	}))
	t.Cleanup(provider.Close)
	i := startOn(t, dbtest.New(t).OwnerURL, providertest.Config{})
	i.double = &providertest.Server{URL: provider.URL}
	w := i.tenant("bombs")
	w.call(http.MethodPost, "/api/v1/patterns", map[string]any{"kind": "convention", "text": "Use tabs for indentation in Go files"}, http.StatusCreated, nil)
	all := bombs()
	which := strings.Split(os.Getenv("BOMB"), ",")
	f, _ := os.Create("/tmp/flt/cpu.prof")
	runtime.GC()
	_ = pprof.StartCPUProfile(f)
	for _, name := range which {
		path, _, _ := strings.Cut(name, " ")
		began := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, _ := w.post(path, []byte(all[name]), nil)
		runtime.ReadMemStats(&after)
		t.Logf("%s: %d %s alloc %d MB", name, r.StatusCode, time.Since(began), (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	pprof.StopCPUProfile()
	f.Close()
	h, _ := os.Create("/tmp/flt/mem.prof")
	_ = pprof.Lookup("allocs").WriteTo(h, 0)
	h.Close()
}
