package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// gated is a session store that waits for leave to record.
type gated struct {
	*memory

	open chan struct{}
}

// Record implements session.Store.
func (g gated) Record(ctx context.Context, tenant tenants.Tenant, seen []session.Seen) error {
	<-g.open
	return g.memory.Record(ctx, tenant, seen)
}

// The memory of a body is used for the next one, but not while its messages wait to be
// recorded, whether they hold it or are a small part of it.
func TestMessagesThatWaitToBeRecordedStayAsTheyCame(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, quickAnswer) })
	store := gated{p.memory, make(chan struct{})}
	recorder := NewRecorder(p.store, store, p.store, archivetest.Keys(), p.Metrics, p.Log)
	recorder.Start()
	t.Cleanup(recorder.Stop)
	p.Recorder = recorder

	sent := map[uuid.UUID][]string{}
	for _, word := range []string{"alpha", "bravo", "charlie", "delta"} {
		body := toolSession("claude-sonnet-4-5", 6, 600)
		body = strings.ReplaceAll(strings.ReplaceAll(body, "word", word), "Do it all.", "Do it all: "+word)
		for _, more := range []string{"", `,{"role":"assistant","content":"Done."},{"role":"user","content":"Thanks, ` + word + `."}`} {
			whole := strings.TrimSuffix(body, `],"model":"claude-sonnet-4-5"}`) + more + `],"model":"claude-sonnet-4-5"}`
			got := p.send(http.MethodPost, messagesPath, whole, "X-Palimpsest-Session-Id", word)
			if got.status != http.StatusOK {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			var asked struct {
				Messages []json.RawMessage `json:"messages"`
			}
			if err := json.Unmarshal([]byte(whole), &asked); err != nil {
				t.Fatal(err)
			}
			lane := uuid.MustParse(got.header.Get("X-Palimpsest-Lane"))
			sent[lane] = nil
			for _, message := range asked.Messages {
				sent[lane] = append(sent[lane], string(message))
			}
		}
	}
	close(store.open)
	recorder.Stop()

	for lane, messages := range sent {
		kept := p.memory.Originals(lane)
		for i, message := range messages {
			if string(kept[i].Raw) != message {
				t.Fatalf("lane %s, message %d: kept %.60q, sent %.60q", lane, i, kept[i].Raw, message)
			}
		}
	}
	if len(sent) != 4 {
		t.Errorf("%d lanes", len(sent))
	}
}

// heldUp is a database that waits for leave to write, and fails when it is told to.
type heldUp struct {
	exchangeStore
	session.Store

	open    chan struct{}
	tried   chan struct{} // hears of attempts that fail
	fails   atomic.Bool
	written atomic.Int64
}

func (h *heldUp) Together(_ context.Context, tenant tenants.Tenant, fn func(tenant tenants.Tenant) error) error {
	<-h.open
	if h.fails.Load() {
		select {
		case h.tried <- struct{}{}:
		default:
		}
		return errors.New("no database")
	}
	return fn(tenant)
}

func (*heldUp) Record(context.Context, tenants.Tenant, []session.Seen) error { return nil }

func (h *heldUp) RecordExchanges(_ context.Context, _ tenants.Tenant, exchanges []tenants.Exchange) error {
	h.written.Add(int64(len(exchanges)))
	return nil
}

// RecordedExchanges implements tenants.Exchanges.
func (*heldUp) RecordedExchanges(context.Context, tenants.Tenant, []uuid.UUID) ([]uuid.UUID, error) {
	return nil, nil
}

// recording starts a recorder, and one who puts so many exchanges into it. All of them are
// of one session: one worker writes them.
func recording(database *heldUp, registry prometheus.Registerer, exchanges int) (recorder *Recorder, all chan struct{}) {
	recorder = NewRecorder(database, database, database, archivetest.Keys(), NewMetrics(registry), slog.New(slog.DiscardHandler))
	recorder.Start()
	all = make(chan struct{})
	go func() {
		defer close(all)
		for range exchanges {
			recorder.put(job{exchange: &tenants.Exchange{}})
		}
	}()
	return recorder, all
}

func TestWhoAsksFasterThanCanBeRecordedWaits(t *testing.T) {
	t.Parallel()
	const fit = recorderBatch + recorderQueue/recorderWorkers
	synctest.Test(t, func(t *testing.T) {
		database, registry := &heldUp{open: make(chan struct{}), tried: make(chan struct{}, 1)}, prometheus.NewRegistry()
		recorder, all := recording(database, registry, fit+100)
		synctest.Wait()
		select {
		case <-all:
			t.Error("no one waits for room")
		default:
		}
		close(database.open)
		<-all
		recorder.Stop()
		if written, dropped := database.written.Load(), counted(t, registry)["palimpsest_usage_events_dropped_total"]; written != fit+100 || dropped > 0 {
			t.Errorf("%d of %d exchanges written, %d dropped", written, fit+100, dropped)
		}
	})
}

func TestRecorderLagIsThatOfTheBatchBeingWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := &heldUp{open: make(chan struct{}), tried: make(chan struct{}, 1)}
		began := time.Now()
		recorder, all := recording(database, prometheus.NewRegistry(), 1)
		<-all
		synctest.Wait()
		if since := recorder.WaitsSince(); !since.Equal(began) {
			t.Errorf("it waits since %s, want %s", since, began)
		}
		close(database.open)
		recorder.Stop()
		if since := recorder.WaitsSince(); !since.IsZero() {
			t.Errorf("once it is recorded it waits since %s", since)
		}
	})
}

func TestNobodyWaitsForADatabaseThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database, registry := &heldUp{open: make(chan struct{}), tried: make(chan struct{}, 1)}, prometheus.NewRegistry()
		database.fails.Store(true)
		close(database.open)
		recorder, first := recording(database, registry, 1)
		<-first
		<-database.tried
		synctest.Wait() // the first attempt has failed
		began := time.Now()
		for range recorderQueue {
			recorder.put(job{exchange: &tenants.Exchange{}})
		}
		if took, dropped := time.Since(began), counted(t, registry)["palimpsest_usage_events_dropped_total"]; took > 0 || dropped == 0 {
			t.Errorf("it took %s, %d exchanges were dropped", took, dropped)
		}
		database.fails.Store(false)
		recorder.Stop()
	})
}

// A batch that the database refuses holds up those behind it for a moment, if it is on the local disk; one that
// the database does not answer, and one that would be lost, for as long as it may take.
func TestBatchThatIsRefusedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	refused := errors.New("the database refuses it")
	for name, test := range map[string]struct {
		err     error
		isKept  bool
		atMost  time.Duration
		atLeast time.Duration
	}{
		"refused, on the disk":   {refused, true, 3 * time.Second, time.Second},
		"refused, nowhere else":  {refused, false, time.Minute, 20 * time.Second},
		"no answer, on the disk": {fmt.Errorf("%w: it is away", tenants.ErrAway), true, time.Minute, 20 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			recorder := NewRecorder(nil, nil, nil, nil, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
			began := time.Now()
			if err := recorder.retry(func(context.Context) error { return test.err }, func() bool { return test.isKept }); !errors.Is(err, test.err) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took < test.atLeast || took > test.atMost {
				t.Errorf("%s: held up for %s", name, took)
			}
		})
	}
}
