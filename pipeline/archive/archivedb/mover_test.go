package archivedb_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/blob"
)

// faultyStore is an S3-compatible store whose connections break while it is down.
type faultyStore struct {
	bucket  archive.Bucket
	backend gofakes3.Backend
	down    atomic.Bool
}

func newFaultyStore(t *testing.T) *faultyStore {
	t.Helper()
	store := &faultyStore{backend: s3mem.New()}
	if err := store.backend.CreateBucket("originals"); err != nil {
		t.Fatal(err)
	}
	serve := gofakes3.New(store.backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if store.down.Load() {
			panic(http.ErrAbortHandler) // breaks the connection
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	bucket, err := blob.Open("s3://key:secret@originals?endpoint=" + server.URL)
	if err != nil {
		t.Fatal(err)
	}
	store.bucket = bucket
	return store
}

func (f *fixture) mover(bucket archive.Bucket) *archivedb.Mover {
	mover := archivedb.NewMover(f.runner, archivetest.Keys(), bucket)
	mover.Segments.Wait, mover.Segments.Dead, mover.Segments.Keep = 0, 0, 0
	return mover
}

func (f *fixture) pending(t *testing.T, mover *archivedb.Mover) int {
	t.Helper()
	volume, err := mover.Volume(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return volume.Pending
}

// restores fails the test unless every message can be read.
func (f *fixture) restores(t *testing.T, reader *archivedb.DB, messages [][]byte) {
	t.Helper()
	got, err := reader.Originals(t.Context(), f.workspace, f.lane, 0, len(messages))
	if err != nil || len(got) != len(messages) {
		t.Fatalf("%d of %d messages, %v", len(got), len(messages), err)
	}
	for i, want := range messages {
		if !bytes.Equal(got[i].Raw, want) {
			t.Errorf("message %d came back as %d bytes, want %d", i, len(got[i].Raw), len(want))
		}
		if raw, err := reader.Object(t.Context(), f.workspace, sha256.Sum256(want)); err != nil || !bytes.Equal(raw, want) {
			t.Errorf("message %d by its hash: %d bytes, %v", i, len(raw), err)
		}
	}
}

func directory(t *testing.T) archive.Bucket {
	t.Helper()
	bucket, err := blob.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

func TestMovedMessagesAreReadFromTheBucket(t *testing.T) {
	t.Parallel()
	for kind, bucket := range map[string]archive.Bucket{"directory": directory(t), "S3": newFaultyStore(t).bucket} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			messages := odd()
			f.put(t, entries(messages...)...)
			mover := f.mover(bucket)
			if got := f.pending(t, mover); got != len(messages) {
				t.Fatalf("%d objects are pending, want %d", got, len(messages))
			}
			if _, err := mover.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := f.pending(t, mover); got != 0 {
				t.Errorf("%d objects are still pending", got)
			}
			reader := archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket)
			f.restores(t, reader, messages)
			f.put(t, entries(messages...)...) // sent again, they are there already
			if got := f.pending(t, mover); got != 0 {
				t.Errorf("%d objects came back into the database", got)
			}
			if _, err := f.archive.Original(t.Context(), f.workspace, f.lane, 0); err == nil || errors.Is(err, archive.ErrNotFound) {
				t.Errorf("without the bucket: %v, want an error that names it", err)
			}
		})
	}
}

// The oldest original counts, of whichever workspace, until the bucket has it.
func TestMoverLagIsThatOfTheOldestOriginal(t *testing.T) {
	t.Parallel()
	f, store := setup(t), newFaultyStore(t)
	mover := f.mover(store.bucket)
	waits := func(want string) {
		t.Helper()
		since, err := mover.WaitsSince(t.Context())
		got := ""
		if !since.IsZero() {
			got = since.UTC().Format(time.DateOnly)
		}
		if err != nil || got != want {
			t.Errorf("the oldest waits since %q, want %q, %v", got, want, err)
		}
	}
	waits("")
	other := f.sibling(t)
	for day, of := range map[string]*fixture{"2026-03-02": f, "2026-03-01": other} {
		of.put(t, entries(odd()...)...)
		of.in(t, func(tx *gorm.DB) error {
			return tx.Exec("UPDATE archive_objects SET created_at = ?::timestamptz WHERE workspace_id = ?", day+" 12:00Z", of.workspace).Error
		})
	}
	waits("2026-03-01")
	store.down.Store(true)
	if _, err := mover.Pass(t.Context()); err == nil {
		t.Error("it moves while the bucket is down")
	}
	waits("2026-03-01")
	store.down.Store(false)
	if _, err := mover.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits("")
	if since, err := f.mover(nil).WaitsSince(t.Context()); err != nil || !since.IsZero() {
		t.Errorf("without a bucket: %s, %v", since, err)
	}
}

// S21
func TestWhileTheBucketIsDownTheDatabaseServesAndThenItDrains(t *testing.T) {
	t.Parallel()
	f, store := setup(t), newFaultyStore(t)
	mover, reader := f.mover(store.bucket), archivedb.New(f.runner, archivetest.Keys()).WithBucket(store.bucket)
	var messages [][]byte
	for i := range 150 { // more than one batch
		messages = append(messages, fmt.Appendf(nil, `{"role":"user","content":"message %d"}`, i))
	}
	all := entries(messages...)

	store.down.Store(true)
	f.put(t, all[:100]...)
	if moved, err := mover.Pass(t.Context()); err == nil || moved != 0 {
		t.Errorf("moved %d, %v, want an error", moved, err)
	}
	f.put(t, all[100:]...)
	if got := f.pending(t, mover); got != 150 {
		t.Errorf("%d objects are pending, want 150", got)
	}
	f.restores(t, reader, messages)

	store.down.Store(false)
	if moved, err := mover.Pass(t.Context()); err != nil || moved != 150 {
		t.Errorf("moved %d, %v, want 150", moved, err)
	}
	f.restores(t, reader, messages)

	store.down.Store(true)
	if _, err := reader.Original(t.Context(), f.workspace, f.lane, 0); !errors.Is(err, archive.ErrAway) || errors.Is(err, archive.ErrDamaged) {
		t.Errorf("from a bucket that is down: %v", err)
	}
}

// S28: four passes at once and one more move everything once.
func TestTwoMoversDoNotGetInEachOthersWay(t *testing.T) {
	t.Parallel()
	f, bucket := setup(t), directory(t)
	var messages [][]byte
	for i := range 300 {
		messages = append(messages, fmt.Appendf(nil, "message %d", i))
	}
	f.put(t, entries(messages...)...)
	results := make(chan error, 4)
	for range cap(results) {
		go func() {
			_, err := f.mover(bucket).Pass(t.Context())
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if _, err := f.mover(bucket).Pass(t.Context()); err != nil {
		t.Error(err)
	}
	if got := f.pending(t, f.mover(bucket)); got != 0 {
		t.Errorf("%d objects are pending", got)
	}
	f.restores(t, archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket), messages)
}

func TestDamageIsFoundOnTheWayToTheBucketAndInIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	root := t.TempDir()
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	messages := [][]byte{[]byte("damaged in the database"), []byte("damaged in the bucket"), []byte("sound")}
	f.put(t, entries(messages...)...)
	f.in(t, func(tx *gorm.DB) error {
		hash := sha256.Sum256(messages[0])
		return tx.Exec("UPDATE archive_objects SET bytes = 'x' WHERE hash = ?", hash[:]).Error
	})
	mover := f.mover(bucket)
	mover.Segments.Originals = 1
	if moved, err := mover.Pass(t.Context()); !errors.Is(err, archive.ErrDamaged) || moved != 2 {
		t.Errorf("moved %d, %v, want 2 and archive.ErrDamaged", moved, err)
	}
	if got := f.pending(t, mover); got != 1 {
		t.Errorf("%d objects stay in the database, want the damaged one", got)
	}

	files, err := filepath.Glob(filepath.Join(root, f.workspace.String(), "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the bucket holds %v, %v", files, err)
	}
	if content, err := os.ReadFile(files[0]); err != nil || len(content) != len(messages[1])+archive.SealedOverhead {
		slices.Reverse(files)
	}
	if err := os.WriteFile(files[0], []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader := archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket)
	for index, want := range []error{archive.ErrDamaged, archive.ErrDamaged, nil} {
		if got, err := reader.Original(t.Context(), f.workspace, f.lane, index); !errors.Is(err, want) || want != nil && got.Raw != nil {
			t.Errorf("message %d: %q, %v, want %v", index, got.Raw, err, want)
		}
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Original(t.Context(), f.workspace, f.lane, 1); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("lost by the bucket: %v, want archive.ErrDamaged", err)
	}
}

func TestADoomedObjectIsDeletedUnlessItIsSentAgain(t *testing.T) {
	t.Parallel()
	f, root := setup(t), t.TempDir()
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	mover, reader := f.mover(bucket), archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket)
	hashes, err := f.putObjects(t, f.workspace, []byte("forgotten"), []byte("sent again"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mover.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.in(t, func(tx *gorm.DB) error { return tx.Exec("UPDATE archive_objects SET place = 2").Error })
	if _, err := reader.Object(t.Context(), f.workspace, hashes[0]); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("a doomed object: %v, want archive.ErrNotFound", err)
	}
	if _, err := f.putObjects(t, f.workspace, []byte("sent again")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := mover.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if raw, err := reader.Object(t.Context(), f.workspace, hashes[1]); err != nil || string(raw) != "sent again" {
		t.Errorf("the one that was sent again: %q, %v", raw, err)
	}
	if got := f.count(t, "archive_objects"); got != 1 {
		t.Errorf("%d objects are left, want 1", got)
	}
	if held := f.inBucket(t, root); len(held) != 1 || strings.Contains(held[0], "forgotten") {
		t.Errorf("the bucket holds %q, want what was sent again alone", held)
	}
}

// inBucket returns what the objects of the workspace in a directory hold.
func (f *fixture) inBucket(t *testing.T, root string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, f.workspace.String(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, string(content))
	}
	return held
}
