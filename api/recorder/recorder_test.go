package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/recorder/recordertest"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// recording starts a recorder, and one who puts so many exchanges into it. All of them are
// of one session: one worker writes them.
func recording(database *recordertest.Database, registry prometheus.Registerer, exchanges int) (recorder *Recorder, all chan struct{}) {
	recorder = New(database, database, database, archivetest.Keys(), NewMetrics(registry), slog.New(slog.DiscardHandler))
	recorder.Start()
	all = make(chan struct{})
	go func() {
		defer close(all)
		for range exchanges {
			recorder.Put(Job{Exchange: &tenants.Exchange{}})
		}
	}()
	return recorder, all
}

func TestWhoAsksFasterThanCanBeRecordedWaits(t *testing.T) {
	t.Parallel()
	const fit = batchLength + queueLength/workers
	synctest.Test(t, func(t *testing.T) {
		database, registry := recordertest.NewDatabase(), prometheus.NewRegistry()
		recorder, all := recording(database, registry, fit+100)
		synctest.Wait()
		select {
		case <-all:
			t.Error("no one waits for room")
		default:
		}
		close(database.Open)
		<-all
		recorder.Stop()
		if written, dropped := database.Written.Load(), recordertest.Counted(t, registry)["palimpsest_usage_events_dropped_total"]; written != fit+100 || dropped > 0 {
			t.Errorf("%d of %d exchanges written, %d dropped", written, fit+100, dropped)
		}
	})
}

// What waits in the queue while a batch is written has waited already once it is written itself.
func TestRecorderLagIsThatOfTheOldestExchange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := recordertest.NewDatabase()
		began := time.Now()
		recorder, all := recording(database, prometheus.NewRegistry(), 1)
		<-all
		synctest.Wait()
		if since := recorder.WaitsSince(); !since.Equal(began) {
			t.Errorf("it waits since %s, want %s", since, began)
		}
		<-time.After(3 * time.Second)
		behind := time.Now()
		recorder.Put(Job{Exchange: &tenants.Exchange{}})
		<-time.After(4 * time.Second)
		database.Open <- struct{}{}
		synctest.Wait()
		if since := recorder.WaitsSince(); !since.Equal(behind) {
			t.Errorf("the one behind it waits since %s, want %s", since, behind)
		}
		close(database.Open)
		recorder.Stop()
		if since := recorder.WaitsSince(); !since.IsZero() {
			t.Errorf("once it is recorded it waits since %s", since)
		}
	})
}

// Of several workers the one that waits longest tells the lag, whichever it is.
func TestRecorderLagIsThatOfTheSlowestWorker(t *testing.T) {
	t.Parallel()
	for _, order := range [][2]byte{{0, 1}, {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			database := recordertest.NewDatabase()
			recorder, _ := recording(database, prometheus.NewRegistry(), 0)
			began := time.Now()
			for _, worker := range order {
				recorder.Put(Job{Exchange: &tenants.Exchange{Request: tenants.ExchangeRequest{Session: uuid.UUID{15: worker}}}})
				<-time.After(3 * time.Second)
			}
			if since := recorder.WaitsSince(); !since.Equal(began) {
				t.Errorf("worker %d first: it waits since %s, want %s", order[0], since, began)
			}
			close(database.Open)
			recorder.Stop()
		})
	}
}

// Jobs that found no room in time leave theirs to later ones.
func TestRoomOfDroppedExchangesIsFree(t *testing.T) {
	t.Parallel()
	const fit = batchLength + queueLength/workers
	synctest.Test(t, func(t *testing.T) {
		database, registry := recordertest.NewDatabase(), prometheus.NewRegistry()
		recorder, all := recording(database, registry, fit)
		<-all
		large := Job{Update: &session.Update{Messages: session.Messages{Answer: make([]byte, queueMemory/4)}}}
		for range 4 {
			recorder.Put(large) // there is no place in the queue
		}
		if dropped := recordertest.Counted(t, registry)["palimpsest_usage_events_dropped_total"]; dropped != 4 {
			t.Fatalf("%d are dropped", dropped)
		}
		close(database.Open)
		synctest.Wait()
		<-time.After(time.Second)
		began := time.Now()
		recorder.Put(large)
		if took := time.Since(began); took > 0 {
			t.Errorf("it waits for %s", took)
		}
		recorder.Stop()
		if updates := len(database.Kept().Updates); updates != 1 {
			t.Errorf("%d are recorded", updates)
		}
	})
}

// In a batch each exchange belongs to the session and lane of its own answer, or to those that it names.
func TestExchangesOfABatchHaveTheirOwnSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := recordertest.NewDatabase()
		recorder, _ := recording(database, prometheus.NewRegistry(), 0)
		id := func(n byte) uuid.UUID { return uuid.UUID{0: n} } // of one worker
		update := func(n byte) *session.Update { return &session.Update{Session: id(n), Lane: id(n + 100)} }
		recorder.Put(Job{Update: update(1)})
		recorder.Put(Job{Update: update(2), Exchange: &tenants.Exchange{ID: id(2)}})
		recorder.Put(Job{Exchange: &tenants.Exchange{ID: id(3), Request: tenants.ExchangeRequest{Session: id(3), Lane: id(103)}}})
		recorder.Put(Job{Update: update(4), Exchange: &tenants.Exchange{ID: id(4)}})
		close(database.Open)
		recorder.Stop()
		kept := database.Kept()
		if len(kept.Exchanges) != 3 || len(kept.Updates) != 3 {
			t.Fatalf("%d exchanges and %d updates are recorded", len(kept.Exchanges), len(kept.Updates))
		}
		for i := range kept.Exchanges {
			if one := &kept.Exchanges[i]; one.Request.Session != one.ID || one.Request.Lane != id(one.ID[0]+100) {
				t.Errorf("exchange %d is of session %s and lane %s", one.ID[0], one.Request.Session, one.Request.Lane)
			}
		}
	})
}

func TestNobodyWaitsForADatabaseThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database, registry := recordertest.NewDatabase(), prometheus.NewRegistry()
		database.Fails.Store(true)
		close(database.Open)
		recorder, first := recording(database, registry, 1)
		<-first
		<-database.Tried
		synctest.Wait() // the first attempt has failed
		began := time.Now()
		for range queueLength {
			recorder.Put(Job{Exchange: &tenants.Exchange{}})
		}
		if took, dropped := time.Since(began), recordertest.Counted(t, registry)["palimpsest_usage_events_dropped_total"]; took > 0 || dropped == 0 {
			t.Errorf("it took %s, %d exchanges were dropped", took, dropped)
		}
		database.Fails.Store(false)
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
			recorder := New(nil, nil, nil, nil, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
			began, attempts := time.Now(), 0
			refuse := func(context.Context) error {
				if attempts++; attempts > 100 {
					t.Fatalf("%s: still tried after %d attempts", name, attempts)
				}
				return test.err
			}
			if err := recorder.retry(refuse, func() bool { return test.isKept }); !errors.Is(err, test.err) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took < test.atLeast || took > test.atMost {
				t.Errorf("%s: held up for %s", name, took)
			}
		})
	}
}
