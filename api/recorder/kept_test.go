package recorder

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/recorder/recordertest"
	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// What a version wrote whose ids of workspaces were plain uuids is read, and written the same.
func TestAWorkspaceIsKeptAsItsBytes(t *testing.T) {
	t.Parallel()
	const before = "a369576f726b7370616365505eed0000000040008000000000000001664150494b6579505eed000000004000800000000000000266466f726d617460"
	workspace, err := tenants.ParseWorkspaceID("5eed0000-0000-4000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	scope := session.Scope{Workspace: workspace, APIKey: uuid.MustParse("5eed0000-0000-4000-8000-000000000002")}
	written, err := keptEncoding.Marshal(scope)
	if err != nil || hex.EncodeToString(written) != before {
		t.Errorf("written as %x, %v", written, err)
	}
	var read session.Scope
	if err := keptDecoding.Unmarshal(written, &read); err != nil || read != scope {
		t.Errorf("read as %+v, %v", read, err)
	}
}

// The record in testdata has a value in every field that there was when it was written.
func TestEveryFieldOfAnEarlierRecordIsKept(t *testing.T) {
	t.Parallel()
	plain, err := os.ReadFile("testdata/kept.cbor")
	if err != nil {
		t.Fatal(err)
	}
	read, err := readKept(plain)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := read.encode(&again, nil); err != nil {
		t.Fatal(err)
	}
	was, is := membersOf(t, plain), membersOf(t, again.Bytes())
	for _, part := range []string{"Request", "Answered", "Exchange"} {
		for name, value := range was[part] {
			if !reflect.DeepEqual(is[part][name], value) {
				t.Errorf("%s.%s is %v, want %v", part, name, is[part][name], value)
			}
		}
	}
	if len(read.Request.Messages.Entries) != 2 || len(was["Exchange"]) != 48 {
		t.Errorf("%d entries, %d fields of the exchange", len(read.Request.Messages.Entries), len(was["Exchange"]))
	}
}

// membersOf returns what a record holds of a request, an answer and an exchange.
func membersOf(t *testing.T, plain []byte) map[string]map[string]any {
	t.Helper()
	var members struct{ Request, Answered, Exchange map[string]any }
	if err := keptDecoding.NewDecoder(bytes.NewReader(plain)).Decode(&members); err != nil {
		t.Fatal(err)
	}
	return map[string]map[string]any{"Request": members.Request, "Answered": members.Answered, "Exchange": members.Exchange}
}

// What the local disk holds is read back whole: bytes, times and texts as they were.
func TestKeptExchangeIsReadBackWhole(t *testing.T) {
	t.Parallel()
	hash := conversation.Hash(sha256.Sum256([]byte("a")))
	at := time.Date(2026, 3, 29, 1, 59, 59, 123_456_789, time.UTC)
	update := session.Update{Session: uuid.New(), Lane: uuid.New(), Messages: session.Messages{Head: hash, Position: 3, Links: []conversation.Hash{hash, {}, hash, {1}}}, At: at}
	for i := range 3 {
		update.Messages.Entries = append(update.Messages.Entries, archive.Entry{Index: i, Hash: hash, Role: conversation.User, Flags: 2, Tokens: i, Raw: []byte("<raw \xff>"), Size: 7, StoredAt: at})
	}
	want := kept{
		Request:  &update,
		Answered: &session.Update{Session: update.Session, Messages: session.Messages{Position: 4, Answer: []byte("{\"content\": \"<b> &\"\xff}")}, At: at, Title: "no \xff UTF-8"},
		Exchange: &tenants.Exchange{
			ID: uuid.New(), At: at,
			Request: tenants.ExchangeRequest{Tags: tenants.Tags{"team": "a"}},
			Prompt:  tenants.ExchangePrompt{Report: []byte(`{"before": 1}`)},
			Cost:    tenants.ExchangeCost{PredictedMicroUSD: new(int64(-7))},
		},
		Said: []byte("said"),
	}
	var plain bytes.Buffer
	err := want.encode(&plain, nil)
	written := plain.Bytes()
	if err != nil || len(want.Request.Messages.Entries) != 3 {
		t.Fatalf("%v; after it was written: %+v", err, want.Request)
	}
	got, err := readKept(written)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v %+v %+v\n%+v %+v %+v", err, got.Request, got.Answered, got.Exchange, want.Request, want.Answered, want.Exchange)
	}
	if _, err := readKept(written[:len(written)-3]); err == nil {
		t.Error("a record that is cut off is read")
	}
}

// What the local disk has no room for is kept there as soon as it has, while the database fails.
func TestExchangeIsKeptOnceTheDiskHasRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		open := func() *spool.Spool {
			opened, err := spool.Open(spool.Config{Dir: dir, MaxBytes: 8 << 10, Keys: archivetest.Keys(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			return opened
		}
		full := open()
		filler, err := full.Put(t.Context(), tenants.NewWorkspaceID(), func(plain *bytes.Buffer) error {
			_, err := plain.Write(make([]byte, 8000))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		database := recordertest.NewDatabase()
		database.Fails.Store(true)
		close(database.Open)
		recorder := New(database, database, database, archivetest.Keys(), NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)).WithSpool(full)
		recorder.Start()
		job := Job{
			Update:   &session.Update{Messages: session.Messages{Answer: []byte("answer")}},
			Request:  NewRequest(&session.Update{Messages: session.Messages{Entries: []archive.Entry{{Raw: []byte("question")}}}}),
			Exchange: &tenants.Exchange{ID: uuid.New()}, Said: []byte("said"),
		}
		job.Update.Scope.Workspace = tenants.NewWorkspaceID()
		job.Kept = recorder.Keep(t.Context(), job)
		recorder.Put(job)
		<-time.After(2 * longestPause)
		if stats := full.Stats(); stats.Records != 1 {
			t.Fatalf("on the full disk: %+v", stats)
		}
		filler.Done()
		<-time.After(2 * longestPause)
		if stats := full.Stats(); stats.Records != 1 {
			t.Fatalf("once it has room: %+v", stats)
		}
		if err := full.Close(); err != nil { // the process is killed
			t.Fatal(err)
		}
		var found []kept
		open().Replay(t.Context(), func(_ context.Context, _ tenants.WorkspaceID, plain [][]byte) error {
			for _, one := range plain {
				read, err := readKept(one)
				if err != nil {
					return err
				}
				found = append(found, read)
			}
			return nil
		})
		if len(found) != 1 || found[0].Exchange.ID != job.Exchange.ID || string(found[0].Said) != "said" || string(found[0].Answered.Messages.Answer) != "answer" ||
			found[0].Request == nil || string(found[0].Request.Messages.Entries[0].Raw) != "question" {
			t.Errorf("the next process finds %+v", found)
		}
		database.Fails.Store(false)
		recorder.Stop()
	})
}

// What it costs to keep an exchange on the local disk until it is recorded: with nothing more
// of its request, and with 100 KB that is not recorded yet.
func BenchmarkKeep(b *testing.B) {
	for name, size := range map[string]int{"answer": 0, "answer and 100 KB": 100_000} {
		b.Run(name, func(b *testing.B) {
			kept, err := spool.Open(spool.Config{Dir: b.TempDir(), MaxBytes: spool.DefaultBytes, Keys: archivetest.Keys(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
			if err != nil {
				b.Fatal(err)
			}
			recorder := New(nil, nil, nil, nil, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)).WithSpool(kept)
			workspace := tenants.NewWorkspaceID()
			for b.Loop() {
				job := Job{
					Update:   &session.Update{Scope: session.Scope{Workspace: workspace}, Messages: session.Messages{Answer: []byte("an answer")}},
					Exchange: &tenants.Exchange{ID: uuid.New(), Workspace: workspace, At: time.Now()},
				}
				if size > 0 {
					job.Request = NewRequest(&session.Update{Messages: session.Messages{Entries: []archive.Entry{{Raw: make([]byte, size)}}}})
				}
				recorder.Keep(b.Context(), job).Done()
			}
		})
	}
}
