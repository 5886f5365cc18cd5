package archivedb_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// fixture is a workspace with one session of one lane.
type fixture struct {
	runner    batchdb.TxRunner
	archive   *archivedb.DB
	workspace tenants.WorkspaceID
	session   uuid.UUID
	lane      uuid.UUID
}

func setup(t testing.TB) *fixture {
	t.Helper()
	return newFixture(t, dbtest.New(t).DB)
}

// sibling returns another workspace in the same database.
func (f *fixture) sibling(t testing.TB) *fixture {
	t.Helper()
	return newFixture(t, f.runner)
}

func newFixture(t testing.TB, runner batchdb.TxRunner) *fixture {
	t.Helper()
	f := &fixture{runner: runner, archive: archivedb.New(runner, archivetest.Keys()), workspace: addWorkspace(t, runner), session: uuid.New()}
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at)
			VALUES (?, ?, ?, 'anthropic', 'lineage', now(), now())`, f.workspace, f.session, uuid.New()).Error
	})
	f.lane = f.addLane(t, time.Now())
	return f
}

// putObjects stores messages that stand in no lane and returns their hashes.
func (f *fixture) putObjects(t testing.TB, workspace tenants.WorkspaceID, messages ...[]byte) ([]conversation.Hash, error) {
	t.Helper()
	hashes := make([]conversation.Hash, len(messages))
	for i, message := range messages {
		hashes[i] = sha256.Sum256(message)
	}
	return hashes, f.runner.InTenant(t.Context(), workspace, func(tx *gorm.DB) error {
		return f.archive.PutObjects(tx, workspace, nil, messages...)
	})
}

func addWorkspace(t testing.TB, runner batchdb.TxRunner) tenants.WorkspaceID {
	t.Helper()
	id := tenants.NewWorkspaceID()
	err := runner.InTenant(t.Context(), id, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'test')", id).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (f *fixture) addLane(t testing.TB, active time.Time) uuid.UUID {
	t.Helper()
	id := uuid.New()
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at) VALUES (?, ?, ?, ?, ?)",
			f.workspace, id, f.session, active, active).Error
	})
	return id
}

// in runs fn in a transaction of the workspace.
func (f *fixture) in(t testing.TB, fn func(tx *gorm.DB) error) {
	t.Helper()
	if err := f.runner.InTenant(t.Context(), f.workspace, fn); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) put(t testing.TB, entries ...archive.Entry) {
	t.Helper()
	f.in(t, func(tx *gorm.DB) error { return f.archive.Put(tx, f.workspace, f.session, f.lane, entries) })
}

func (f *fixture) count(t testing.TB, table string) int {
	t.Helper()
	var count int
	f.in(t, func(tx *gorm.DB) error {
		return tx.Table(table).Select("count(*)").Where("workspace_id = ?", f.workspace).Scan(&count).Error
	})
	return count
}

func entry(index int, raw []byte) archive.Entry {
	return archive.Entry{Index: index, Hash: sha256.Sum256(raw), Role: conversation.User, Tokens: len(raw) / 4, Raw: raw, Size: len(raw)}
}

func entries(messages ...[]byte) []archive.Entry {
	list := make([]archive.Entry, len(messages))
	for i, raw := range messages {
		list[i] = entry(i, raw)
	}
	return list
}

// odd are messages that a careless store would change.
func odd() [][]byte {
	noise := make([]byte, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	return [][]byte{
		[]byte(`{}`),
		[]byte(`{"role":"user","content":"hi"}`),
		[]byte("{ \"role\" :\t\"user\",\r\n \"content\":\"\\u00e9é 漢字 🙂\", \"n\": 1.0, \"n\": 1e2 }\n"),
		[]byte("\x00\xff\xfe not UTF-8, with NUL \x00"),
		[]byte(`{"role":"user","content":"` + strings.Repeat("the same words again. ", 5000) + `"}`),
		fmt.Appendf(nil, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%x"}}]}`, noise[:200_000]),
		noise,
		[]byte(strings.Repeat("x", 63)), []byte(strings.Repeat("x", 64)), []byte(strings.Repeat("x", 65)),
	}
}

// E2
func TestEveryOriginalIsRestoredByteForByte(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := odd()
	f.put(t, entries(messages...)...)

	restarted := archivedb.New(f.runner, archivetest.Keys())
	for i, want := range messages {
		got, err := restarted.Original(t.Context(), f.workspace, f.lane, i)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if !bytes.Equal(got.Raw, want) || got.Size != len(want) || got.Index != i || got.Hash != sha256.Sum256(want) {
			t.Errorf("message %d of %d bytes came back as %d bytes (%+v)", i, len(want), len(got.Raw), got.Index)
		}
		if got.Role != conversation.User || got.Tokens != len(want)/4 || got.StoredAt.IsZero() {
			t.Errorf("message %d: role %q, %d tokens, stored at %v", i, got.Role, got.Tokens, got.StoredAt)
		}
	}
	all, err := restarted.Originals(t.Context(), f.workspace, f.lane, 2, 5)
	if err != nil || len(all) != 3 || !bytes.Equal(all[2].Raw, messages[4]) {
		t.Errorf("messages 2 to 5: %d, %v", len(all), err)
	}
}

func TestAMessageSentAHundredTimesIsStoredOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := odd()
	for range 100 {
		f.put(t, entries(messages...)...)
	}
	other := f.addLane(t, time.Now())
	f.in(t, func(tx *gorm.DB) error {
		return f.archive.Put(tx, f.workspace, f.session, other, entries(messages...))
	})

	if got := f.count(t, "archive_objects"); got != len(messages) {
		t.Errorf("%d objects, want %d", got, len(messages))
	}
	if got := f.count(t, "archive_entries"); got != 2*len(messages) {
		t.Errorf("%d entries, want %d in each lane", got, len(messages))
	}
}

func TestCompressionIsUsedOnlyWhereItHelps(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := odd()
	f.put(t, entries(messages...)...)
	var stored []struct{ Size, Encoding, Bytes int }
	f.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT size, encoding, octet_length(bytes) AS bytes FROM archive_objects ORDER BY size").Scan(&stored).Error
	})
	compressed := 0
	for _, object := range stored {
		packed := object.Bytes - archive.SealedOverhead
		if packed > object.Size {
			t.Errorf("a message of %d bytes takes %d", object.Size, packed)
		}
		if object.Encoding == 2 && packed != object.Size {
			t.Errorf("a message of %d bytes that is not compressed takes %d", object.Size, packed)
		}
		compressed += object.Encoding - 2
	}
	if len(stored) != len(messages) || compressed < 3 {
		t.Errorf("%d of %d messages are compressed", compressed, len(stored))
	}
}

func TestDamagedBytesAreNeverReturned(t *testing.T) {
	t.Parallel()
	shared, long := setup(t), []byte(strings.Repeat("all of this is compressed. ", 200))
	for name, damage := range map[string]string{
		"a byte changed":      `SET bytes = set_byte(bytes, 20, get_byte(bytes, 20) # 1)`,
		"bytes cut off":       `SET bytes = substr(bytes, 1, 12)`,
		"bytes gone":          `SET bytes = ''`,
		"said to be plain":    `SET encoding = 0`,
		"an unknown encoding": `SET encoding = 9`,
		"another message":     `SET bytes = (SELECT bytes FROM archive_objects o WHERE o.workspace_id = archive_objects.workspace_id AND o.hash <> archive_objects.hash)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := shared.sibling(t)
			f.put(t, entries(long, []byte("another message that is not compressed"))...)
			damaged := entry(0, long)
			f.in(t, func(tx *gorm.DB) error {
				return tx.Exec("UPDATE archive_objects "+damage+" WHERE hash = ?", damaged.Hash[:]).Error
			})
			got, err := f.archive.Original(t.Context(), f.workspace, f.lane, 0)
			if !errors.Is(err, archive.ErrDamaged) || got.Raw != nil {
				t.Errorf("got %d bytes, %v, want archive.ErrDamaged", len(got.Raw), err)
			}
			if raw, err := f.archive.Object(t.Context(), f.workspace, damaged.Hash); !errors.Is(err, archive.ErrDamaged) || raw != nil {
				t.Errorf("by its hash: %d bytes, %v, want archive.ErrDamaged", len(raw), err)
			}
		})
	}
}

func TestAMessageUnderAWrongHashIsNotStored(t *testing.T) {
	t.Parallel()
	f := setup(t)
	wrong := entry(0, []byte("one thing"))
	wrong.Raw = []byte("another thing")
	err := f.runner.InTenant(t.Context(), f.workspace, func(tx *gorm.DB) error {
		return f.archive.Put(tx, f.workspace, f.session, f.lane, []archive.Entry{wrong})
	})
	if !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("got %v, want archive.ErrDamaged", err)
	}
	if got := f.count(t, "archive_objects"); got != 0 {
		t.Errorf("%d objects are stored", got)
	}
}

func TestWhatStandsAtAPlaceStays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries([]byte("first"))...)
	f.put(t, entries([]byte("second"))...)
	got, err := f.archive.Original(t.Context(), f.workspace, f.lane, 0)
	if err != nil || string(got.Raw) != "first" {
		t.Errorf("got %q, %v", got.Raw, err)
	}
}

func TestARolledBackWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	failure := errors.New("the caller failed")
	err := f.runner.InTenant(t.Context(), f.workspace, func(tx *gorm.DB) error {
		if err := f.archive.Put(tx, f.workspace, f.session, f.lane, entries(odd()...)); err != nil {
			t.Error(err)
		}
		return failure
	})
	if !errors.Is(err, failure) || f.count(t, "archive_objects") != 0 || f.count(t, "archive_entries") != 0 {
		t.Errorf("after %v: %d objects, %d entries", err, f.count(t, "archive_objects"), f.count(t, "archive_entries"))
	}
}

// S2, S5
func TestAnotherWorkspaceFindsNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	message := []byte(`{"role":"user","content":"a secret"}`)
	f.put(t, entries(message)...)
	other := addWorkspace(t, f.runner)

	if _, err := f.archive.Original(t.Context(), other, f.lane, 0); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("original: %v, want archive.ErrNotFound", err)
	}
	if _, err := f.archive.Object(t.Context(), other, sha256.Sum256(message)); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("object: %v, want archive.ErrNotFound", err)
	}
	if got, err := f.archive.Entries(t.Context(), other, f.lane, 0, 10); err != nil || len(got) != 0 {
		t.Errorf("entries: %d, %v", len(got), err)
	}
	if _, err := f.archive.Lanes(t.Context(), other, f.session); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("lanes: %v, want archive.ErrNotFound", err)
	}
	// The same message of another workspace is another object.
	if _, err := f.putObjects(t, other, message); err != nil {
		t.Fatal(err)
	}
	if got := f.count(t, "archive_objects"); got != 1 {
		t.Errorf("%d objects in the first workspace, want 1", got)
	}
}

func TestAWorkspaceCannotWriteIntoAnother(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := addWorkspace(t, f.runner)
	err := f.runner.InTenant(t.Context(), other, func(tx *gorm.DB) error {
		return f.archive.Put(tx, f.workspace, f.session, f.lane, entries([]byte("planted")))
	})
	if err == nil || f.count(t, "archive_objects") != 0 {
		t.Errorf("got %v and %d objects, want an error and none", err, f.count(t, "archive_objects"))
	}
}

func TestEntriesArePagedByIndex(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var messages [][]byte
	for i := range 25 {
		messages = append(messages, fmt.Appendf(nil, "message %d", i))
	}
	f.put(t, entries(messages...)...)
	from, seen := 0, 0
	for {
		page, err := f.archive.Entries(t.Context(), f.workspace, f.lane, from, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, got := range page {
			if got.Index != seen || got.Raw != nil || got.Size != len(messages[seen]) || got.Hash != sha256.Sum256(messages[seen]) {
				t.Fatalf("entry %d is %+v", seen, got)
			}
			seen++
		}
		from = page[len(page)-1].Index + 1
	}
	if seen != len(messages) {
		t.Errorf("saw %d of %d entries", seen, len(messages))
	}
}

func TestTheMostRecentlyActiveLaneComesFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries([]byte("one"), []byte("two"))...)
	main := f.addLane(t, time.Now().Add(time.Hour))
	lanes, err := f.archive.Lanes(t.Context(), f.workspace, f.session)
	if err != nil || len(lanes) != 2 {
		t.Fatalf("%d lanes, %v", len(lanes), err)
	}
	if lanes[0].ID != main || lanes[0].Entries != 0 || lanes[1].ID != f.lane || lanes[1].Entries != 2 {
		t.Errorf("lanes are %+v", lanes)
	}
}

func TestAnswersNeedNoLane(t *testing.T) {
	t.Parallel()
	f := setup(t)
	answers := odd()
	hashes, err := f.putObjects(t, f.workspace, answers...)
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.putObjects(t, f.workspace, answers...)
	if err != nil || len(again) != len(answers) {
		t.Fatalf("again: %d, %v", len(again), err)
	}
	for i, want := range answers {
		got, err := f.archive.Object(t.Context(), f.workspace, hashes[i])
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("answer %d: %d bytes, %v", i, len(got), err)
		}
	}
	if _, err := f.putObjects(t, f.workspace); err != nil {
		t.Errorf("no answers: %v", err)
	}
}

func TestWritersOfTheSameMessagesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var messages [][]byte
	for i := range 200 {
		messages = append(messages, fmt.Appendf(nil, "message %d of everybody", i))
	}
	var writers sync.WaitGroup
	for writer := range 8 {
		lane := f.addLane(t, time.Now())
		mixed := entries(messages...)
		random := rand.New(rand.NewPCG(uint64(writer), 1))
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		writers.Go(func() {
			for part := range 4 {
				err := f.runner.InTenant(context.WithoutCancel(t.Context()), f.workspace, func(tx *gorm.DB) error {
					return f.archive.Put(tx, f.workspace, f.session, lane, mixed[part*50:part*50+50])
				})
				if err != nil {
					t.Errorf("writer %d: %v", writer, err)
				}
			}
		})
	}
	writers.Wait()
	if objects, manifest := f.count(t, "archive_objects"), f.count(t, "archive_entries"); objects != 200 || manifest != 1600 {
		t.Errorf("%d objects and %d entries, want 200 and 1600", objects, manifest)
	}
}
