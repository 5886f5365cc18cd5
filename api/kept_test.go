package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/recorder"
	"palimpsest/api/recorder/recordertest"
	"palimpsest/api/spool"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const keptBody = `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"keep <this> & that"}]}`

// spooling has the proxy's recorder keep what waits in a directory, and wait for leave to write.
func (p *proxy) spooling(dir string) (database *recordertest.Database, kept *spool.Spool) {
	p.t.Helper()
	kept, err := spool.Open(spool.Config{Dir: dir, MaxBytes: spool.DefaultBytes, Keys: archivetest.Keys(), Log: p.Log, Now: time.Now})
	if err != nil {
		p.t.Fatal(err)
	}
	database = recordertest.NewDatabase()
	records := recorder.New(database, p.memory, p.store, archivetest.Keys(), p.Metrics.Recorded, p.Log).WithSpool(kept)
	records.Start()
	p.t.Cleanup(func() {
		select {
		case <-database.Open:
		default:
			close(database.Open)
		}
		records.Stop()
	})
	p.Recorder = records
	return database, kept
}

// lastWrite sees how much is on the local disk when the last byte of an answer goes out.
type lastWrite struct {
	http.ResponseWriter

	kept   *spool.Spool
	before int
}

func (w *lastWrite) Write(p []byte) (int, error) {
	w.before = w.kept.Stats().Records
	return w.ResponseWriter.Write(p)
}

// Unwrap lets the response be flushed.
func (w *lastWrite) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// An exchange is on the local disk before its client has all of the answer, and until it is
// recorded.
func TestExchangeIsKeptBeforeItsAnswerIsWhole(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]http.HandlerFunc{
		"whole": func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, quickAnswer) },
		"streamed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n")
			w.(http.Flusher).Flush()
			_, _ = fmt.Fprint(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, provider)
			database, kept := p.spooling(t.TempDir())
			seen := &lastWrite{kept: kept}
			e := echo.New()
			p.Register(e)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen.ResponseWriter = w
				e.ServeHTTP(seen, r)
			}))
			t.Cleanup(front.Close)
			p.url = front.URL
			got := p.send(http.MethodPost, messagesPath, keptBody)
			if got.status != http.StatusOK || got.broken != nil {
				t.Fatalf("status %d, %v: %s", got.status, got.broken, got.body)
			}
			if seen.before != 1 {
				t.Errorf("%d exchanges were on the disk before the last byte", seen.before)
			}
			close(database.Open)
			p.Recorder.Stop()
			if stats := kept.Stats(); stats.Records != 0 {
				t.Errorf("once it is recorded: %+v", stats)
			}
		})
	}
}

// answered is a session store that keeps the answer that it hears of.
type answered struct {
	*memory

	answer []byte
}

// Record implements session.Store.
func (a *answered) Record(ctx context.Context, tenant tenants.Tenant, seen []session.Update) error {
	for i := range seen {
		a.answer = append(a.answer, seen[i].Messages.Answer...)
	}
	return a.memory.Record(ctx, tenant, seen)
}

// What could not be recorded is recorded from the local disk later: with its messages and its
// answer, and once, though another process may have recorded it meanwhile.
func TestKeptExchangeIsRecordedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, strings.Replace(quickAnswer, `"done"`, `"done,  <b> &c."`, 1))
	})
	_, kept := p.spooling(dir)
	got := p.send(http.MethodPost, messagesPath, keptBody)
	lane, id := uuid.MustParse(got.header.Get("X-Palimpsest-Lane")), uuid.MustParse(got.header.Get("X-Palimpsest-Request-Id"))
	if err := kept.Close(); err != nil { // the process is killed
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}

	store := &answered{memory: p.memory}
	for range 2 {
		if err := os.WriteFile(files[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := spool.Open(spool.Config{Dir: dir, MaxBytes: spool.DefaultBytes, Keys: archivetest.Keys(), Log: p.Log, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		recorder.New(p.store, store, p.store, archivetest.Keys(), p.Metrics.Recorded, p.Log).WithSpool(again).Replay(t.Context())
	}
	hash := sha256.Sum256(store.answer)
	if len(p.store.exchanges) != 1 || p.store.exchanges[0].ID != id || !bytes.Equal(p.store.exchanges[0].Answer.Answer, hash[:]) {
		t.Errorf("recorded are %+v with the answer %q", p.store.exchanges, store.answer)
	}
	if originals := p.memory.Originals(lane); len(originals) != 1 || !bytes.Contains([]byte(keptBody), originals[0].Raw) {
		t.Errorf("originals: %+v", originals)
	}
}
