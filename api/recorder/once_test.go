package recorder

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/recorder/recordertest"
	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/faulttest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// S20: two exchanges of each of two workspaces, and a request that does not end, are recorded once, each with its
// messages, whichever call of the database fails. The same process or the next one records the rest.
func TestExchangeIsRecordedOnceWhicheverCallFails(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{faulttest.Err, tenants.ErrAway} {
		for name, isKilled := range map[string]bool{"the program goes on": false, "the program is killed": true} {
			t.Run(fault.Error()+", "+name, func(t *testing.T) {
				t.Parallel()
				faulttest.Walk(t, fault, func(t *testing.T, calls *faulttest.Calls) {
					synctest.Test(t, func(t *testing.T) { testRecording(t, calls, isKilled) })
				})
			})
		}
	}
}

func testRecording(t *testing.T, calls *faulttest.Calls, isKilled bool) {
	t.Helper()
	dir, database, told := t.TempDir(), recordertest.NewDatabase(), 0
	database.Calls = calls
	close(database.Open)
	open := func() (*Recorder, *spool.Spool) {
		recorder, kept := recorderOf(t, dir, database, database, database)
		recorder.Recorded = func(_ tenants.WorkspaceID, apiKeys []uuid.UUID) { told += len(apiKeys) }
		return recorder, kept
	}
	recorder, kept := open()
	recorder.Start()
	var want []string
	for _, workspace := range []tenants.WorkspaceID{{1}, {2}} {
		for i := range 2 {
			name := fmt.Sprintf("exchange %d of %d", i, workspace[0])
			want = append(want, name)
			scope := session.Scope{Workspace: workspace}
			request := &session.Update{Scope: scope, Title: "request of " + name, Messages: session.Messages{Entries: []archive.Entry{{Raw: []byte(name)}}}}
			said := NewRequest(request)
			recorder.Put(Job{Update: request, Request: said})
			ended := Job{
				Update: &session.Update{Scope: scope, Title: "answer of " + name, Increment: session.Increment{Exchanges: 1}}, Request: said,
				Exchange: &tenants.Exchange{ID: uuid.UUID{workspace[0], byte(i)}, Workspace: workspace, Request: tenants.ExchangeRequest{Model: name}},
			}
			ended.Kept = recorder.Keep(t.Context(), ended)
			recorder.Put(ended)
		}
	}
	slices.Sort(want)
	alone := &session.Update{Scope: session.Scope{Workspace: tenants.WorkspaceID{1}}, Messages: session.Messages{Entries: []archive.Entry{{Raw: []byte("alone")}}}}
	recorder.Put(Job{Update: alone, Request: NewRequest(alone)})
	recorder.Stop()
	calls.Repair()
	if !isKilled {
		recorder.Replay(t.Context())
		if stats := kept.Stats(); stats.Records > 0 {
			t.Errorf("the same process leaves %+v on the disk", stats)
		}
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	next, kept := open()
	for range 2 {
		next.Replay(t.Context())
	}
	var exchanges, answers []string
	messages := map[string]bool{}
	for _, one := range database.Kept().Exchanges {
		exchanges = append(exchanges, one.Request.Model)
	}
	for _, one := range database.Kept().Updates {
		if one.Increment.Exchanges > 0 {
			answers = append(answers, one.Title)
		}
		for _, entry := range one.Messages.Entries {
			messages[string(entry.Raw)] = true
		}
	}
	slices.Sort(exchanges)
	if !slices.Equal(exchanges, want) || len(messages) != len(want)+1 || !messages["alone"] {
		t.Errorf("recorded are %q, and the messages of %d requests", exchanges, len(messages))
	}
	slices.Sort(answers)
	for i, name := range want {
		if i >= len(answers) || answers[i] != "answer of "+name || len(answers) != len(want) {
			t.Fatalf("counted are %q", answers)
		}
	}
	if told > len(want) || calls.Fault() == nil && told != len(want) {
		t.Errorf("Recorded hears of %d exchanges", told)
	}
	if stats := kept.Stats(); stats.Records != 0 {
		t.Errorf("on the disk is left %+v", stats)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
}

// recorderOf returns a recorder that is not started, with its spool in a directory.
func recorderOf(t *testing.T, dir string, database tenants.Transactor, store *recordertest.Database, usage tenants.Exchanges) (*Recorder, *spool.Spool) {
	t.Helper()
	kept, err := spool.Open(spool.Config{Dir: dir, MaxBytes: spool.DefaultBytes, Keys: archivetest.Keys(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return New(database, store, usage, archivetest.Keys(), NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)).WithSpool(kept), kept
}

// S20: of a process that is killed before it records anything, the next one records an exchange with the messages
// of its request and its answer.
func TestKeptExchangeIsRecordedWithItsRequest(t *testing.T) {
	t.Parallel()
	dir, database := t.TempDir(), recordertest.NewDatabase()
	close(database.Open)
	recorder, kept := recorderOf(t, dir, database, database, database)
	scope := session.Scope{Workspace: tenants.WorkspaceID{1}}
	for i := range byte(2) {
		recorder.Keep(t.Context(), Job{
			Update:   &session.Update{Scope: scope, Messages: session.Messages{Answer: []byte{i}}},
			Request:  NewRequest(&session.Update{Scope: scope, Messages: session.Messages{Entries: []archive.Entry{{Raw: []byte{i}}}}}),
			Exchange: &tenants.Exchange{ID: uuid.UUID{i + 1}, Workspace: scope.Workspace},
		}).Failed()
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	next, kept := recorderOf(t, dir, database, database, database)
	next.Replay(t.Context())
	var said []string
	for _, one := range database.Kept().Updates {
		for _, entry := range one.Messages.Entries {
			said = append(said, fmt.Sprintf("request %d", entry.Raw))
		}
		if one.Messages.Answer != nil {
			said = append(said, fmt.Sprintf("answer %d", one.Messages.Answer))
		}
	}
	slices.Sort(said)
	if want := []string{"answer [0]", "answer [1]", "request [0]", "request [1]"}; !slices.Equal(said, want) || len(database.Kept().Exchanges) != 2 || kept.Stats().Records != 0 {
		t.Errorf("recorded are %q with %d exchanges, %+v", said, len(database.Kept().Exchanges), kept.Stats())
	}
}

// blind is a database that loses the answer to its first commit, and then fails once to tell the recorded exchanges.
type blind struct {
	*recordertest.Database

	committed, asked bool
}

func (d *blind) Together(ctx context.Context, tenant tenants.Tenant, work func(tenant tenants.Tenant) error) error {
	err := d.Database.Together(ctx, tenant, work)
	if err == nil && !d.committed {
		d.committed = true
		return faulttest.Err
	}
	return err
}

func (d *blind) RecordedExchanges(ctx context.Context, tenant tenants.Tenant, ids []uuid.UUID) ([]uuid.UUID, error) {
	if !d.asked {
		d.asked = true
		return nil, faulttest.Err
	}
	return d.Database.RecordedExchanges(ctx, tenant, ids)
}

// S20: a retry that cannot tell whether an exchange is recorded does not count it again.
func TestRetryWaitsUntilItKnowsWhatIsRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := &blind{Database: recordertest.NewDatabase()}
		close(database.Open)
		recorder, _ := recorderOf(t, t.TempDir(), database, database.Database, database)
		recorder.Start()
		scope := session.Scope{Workspace: tenants.WorkspaceID{1}}
		recorder.Put(Job{Update: &session.Update{Scope: scope}, Exchange: &tenants.Exchange{ID: uuid.UUID{1}, Workspace: scope.Workspace}})
		<-time.After(time.Minute)
		recorder.Stop()
		if got := database.Kept(); len(got.Updates) != 1 || len(got.Exchanges) != 1 || !database.asked {
			t.Errorf("%d updates and %d exchanges are recorded", len(got.Updates), len(got.Exchanges))
		}
	})
}
