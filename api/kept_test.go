package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const keptBody = `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"keep <this> & that"}]}`

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
	if len(read.Request.Entries) != 2 || len(was["Exchange"]) != 48 {
		t.Errorf("%d entries, %d fields of the exchange", len(read.Request.Entries), len(was["Exchange"]))
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

// spooling has the proxy's recorder keep what waits in a directory, and wait for leave to write.
func (p *proxy) spooling(dir string) (database *heldUp, kept *spool.Spool) {
	p.t.Helper()
	kept, err := spool.Open(spool.Config{Dir: dir, MaxBytes: spool.DefaultBytes, Keys: archivetest.Keys(), Log: p.Log, Now: time.Now})
	if err != nil {
		p.t.Fatal(err)
	}
	database = &heldUp{open: make(chan struct{}), tried: make(chan struct{}, 1)}
	recorder := NewRecorder(database, p.memory, p.store, archivetest.Keys(), p.Metrics, p.Log).WithSpool(kept)
	recorder.Start()
	p.t.Cleanup(func() {
		select {
		case <-database.open:
		default:
			close(database.open)
		}
		recorder.Stop()
	})
	p.Recorder = recorder
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
			close(database.open)
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
func (a *answered) Record(ctx context.Context, tenant tenants.Tenant, seen []session.Seen) error {
	for i := range seen {
		a.answer = append(a.answer, seen[i].Answer...)
	}
	return a.memory.Record(ctx, tenant, seen)
}

// What the local disk holds is read back whole: bytes, times and texts as they were.
func TestKeptExchangeIsReadBackWhole(t *testing.T) {
	t.Parallel()
	hash := conversation.Hash(sha256.Sum256([]byte("a")))
	at := time.Date(2026, 3, 29, 1, 59, 59, 123_456_789, time.UTC)
	seen := session.Seen{Session: uuid.New(), Lane: uuid.New(), Messages: session.Messages{Head: hash, Position: 3, Links: []conversation.Hash{hash, {}, hash, {1}}}, At: at}
	for i := range 3 {
		seen.Entries = append(seen.Entries, archive.Entry{Index: i, Hash: hash, Role: conversation.User, Flags: 2, Tokens: i, Raw: []byte("<raw \xff>"), Size: 7, StoredAt: at})
	}
	want := kept{
		Request:  &seen,
		Answered: &session.Seen{Session: seen.Session, Messages: session.Messages{Position: 4, Answer: []byte("{\"content\": \"<b> &\"\xff}")}, At: at, Title: "no \xff UTF-8"},
		Exchange: &tenants.Exchange{
			ID: uuid.New(), At: at,
			ExchangeRequest: tenants.ExchangeRequest{Tags: tenants.Tags{"team": "a"}},
			ExchangePrompt:  tenants.ExchangePrompt{Report: []byte(`{"before": 1}`)},
			ExchangeCost:    tenants.ExchangeCost{PredictedMicroUSD: new(int64(-7))},
		},
		Said: []byte("said"),
	}
	var plain bytes.Buffer
	err := want.encode(&plain, nil)
	written := plain.Bytes()
	if err != nil || len(want.Request.Entries) != 3 {
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
		NewRecorder(p.store, store, p.store, archivetest.Keys(), p.Metrics, p.Log).WithSpool(again).Replay(t.Context())
	}
	hash := sha256.Sum256(store.answer)
	if len(p.store.exchanges) != 1 || p.store.exchanges[0].ID != id || !bytes.Equal(p.store.exchanges[0].Answer, hash[:]) {
		t.Errorf("recorded are %+v with the answer %q", p.store.exchanges, store.answer)
	}
	if originals := p.memory.Originals(lane); len(originals) != 1 || !bytes.Contains([]byte(keptBody), originals[0].Raw) {
		t.Errorf("originals: %+v", originals)
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
		database := &heldUp{open: make(chan struct{}), tried: make(chan struct{}, 1)}
		database.fails.Store(true)
		close(database.open)
		records := Records{Metrics: NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler), Now: time.Now}
		records.Recorder = NewRecorder(database, database, database, archivetest.Keys(), records.Metrics, records.Log).WithSpool(full)
		records.Recorder.Start()
		event := &Event{
			ID: uuid.New(), Workspace: tenants.NewWorkspaceID(), said: []byte("said"), seen: &session.Seen{Messages: session.Messages{Answer: []byte("answer")}},
			request: &unrecorded{seen: &session.Seen{Messages: session.Messages{Entries: []archive.Entry{{Raw: []byte("question")}}}}},
		}
		records.end(t.Context(), event)
		<-time.After(2 * recorderPause)
		if stats := full.Stats(); stats.Records != 1 {
			t.Fatalf("on the full disk: %+v", stats)
		}
		filler.Done()
		<-time.After(2 * recorderPause)
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
		if len(found) != 1 || found[0].Exchange.ID != event.ID || string(found[0].Said) != "said" || string(found[0].Answered.Answer) != "answer" ||
			found[0].Request == nil || string(found[0].Request.Entries[0].Raw) != "question" {
			t.Errorf("the next process finds %+v", found)
		}
		database.fails.Store(false)
		records.Recorder.Stop()
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
			records := &Records{Recorder: (&Recorder{}).WithSpool(kept), Log: slog.New(slog.DiscardHandler)}
			workspace := tenants.NewWorkspaceID()
			for b.Loop() {
				event := &Event{ID: uuid.New(), At: time.Now(), Workspace: workspace, Endpoint: messagesPath, Status: http.StatusOK, seen: &session.Seen{Messages: session.Messages{Answer: []byte(quickAnswer)}}}
				if size > 0 {
					event.request = &unrecorded{seen: &session.Seen{Messages: session.Messages{Entries: []archive.Entry{{Raw: make([]byte, size)}}}}}
				}
				records.keep(b.Context(), event)
				event.kept.Done()
			}
		})
	}
}
