package archivedb_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/tenants"
)

// readable returns how many objects in the database hold a text as it is.
func (f *fixture) readable(t testing.TB, text string) int {
	t.Helper()
	var found int
	f.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT count(*) FROM archive_objects WHERE position(convert_to(?, 'UTF8') IN bytes) > 0 OR encoding < 2", text).Scan(&found).Error
	})
	return found
}

// E2
func TestSealedOriginalsAreRestoredByteForByteAfterARestart(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := append(odd(), []byte("a canary that nobody may read"))
	f.put(t, entries(messages...)...)
	if got := f.readable(t, "a canary"); got != 0 {
		t.Errorf("%d objects lie open in the database", got)
	}
	restarted := archivedb.New(f.runner, archivetest.Keys())
	f.restores(t, restarted, messages)
	if count, err := verify(t.Context(), restarted, f.workspace, f.lane); err != nil || count != len(messages) {
		t.Errorf("verified %d messages, %v", count, err)
	}
	f.put(t, entries(messages...)...)
	if got := f.count(t, "archive_objects"); got != len(messages) {
		t.Errorf("%d objects, want %d: what is sent again is known by its hash", got, len(messages))
	}
}

func TestWithoutTheKeyNothingOpens(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries([]byte("secret"))...)
	reader := archivedb.New(f.runner, archivetest.KeysOf("another installation"))
	if got, err := reader.Original(t.Context(), f.workspace, f.lane, 0); !errors.Is(err, archive.ErrDamaged) || got.Raw != nil {
		t.Errorf("%q, %v", got.Raw, err)
	}
}

// S5, S15: sealed bytes open only in their workspace and under their hash.
func TestSealedBytesOpenNowhereElse(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries([]byte("one"), []byte("two"))...)
	other := f.sibling(t)
	other.archive = f.archive
	other.put(t, entries([]byte("one"))...)
	one := sha256.Sum256([]byte("one"))
	var copied []byte
	f.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT bytes FROM archive_objects WHERE hash = ?", one[:]).Row().Scan(&copied)
	})
	other.in(t, func(tx *gorm.DB) error { return tx.Exec("UPDATE archive_objects SET bytes = ?", copied).Error })
	if got, err := other.archive.Original(t.Context(), other.workspace, other.lane, 0); !errors.Is(err, archive.ErrDamaged) || got.Raw != nil {
		t.Errorf("in another workspace: %q, %v", got.Raw, err)
	}
	f.in(t, func(tx *gorm.DB) error { return tx.Exec("UPDATE archive_objects SET bytes = ?", copied).Error })
	if got, err := f.archive.Original(t.Context(), f.workspace, f.lane, 1); !errors.Is(err, archive.ErrDamaged) || got.Raw != nil {
		t.Errorf("under another hash: %q, %v", got.Raw, err)
	}
}

// E2, S21: in a directory and in an S3-compatible store.
func TestABucketHoldsNothingReadableNotEvenNames(t *testing.T) {
	t.Parallel()
	for kind, bucket := range map[string]archive.Bucket{"directory": directory(t), "S3": newFaultyStore(t).bucket} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			messages := odd()
			f.put(t, entries(messages...)...)
			if moved, err := f.mover(bucket).Pass(t.Context()); err != nil || moved != len(messages) {
				t.Fatalf("moved %d, %v", moved, err)
			}
			for _, message := range messages {
				if _, err := bucket.Get(t.Context(), fmt.Sprintf("%s/%x", f.workspace, sha256.Sum256(message))); !errors.Is(err, archive.ErrNotFound) {
					t.Errorf("the hash of a message is a name in the bucket: %v", err)
				}
			}
			restarted := archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket)
			f.restores(t, restarted, messages)
			if count, err := verify(t.Context(), restarted, f.workspace, f.lane); err != nil || count != len(messages) {
				t.Errorf("verified %d messages, %v", count, err)
			}
		})
	}
}

// S5: every name in a bucket begins with its workspace, and the same message has another
// name, and other bytes, in another.
func TestNamesInABucketBelongToTheirWorkspace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.sibling(t)
	other.archive = f.archive
	f.put(t, entries(odd()...)...)
	other.put(t, entries(odd()...)...)
	place := t.TempDir()
	bucket, err := blob.NewDirectory(place)
	if err != nil {
		t.Fatal(err)
	}
	mover := f.mover(bucket)
	mover.Segments.Originals = 1
	if moved, err := mover.Pass(t.Context()); err != nil || moved != 2*len(odd()) {
		t.Fatalf("moved %d, %v", moved, err)
	}
	owners := map[string]string{} // by the rest of the name, and by the bytes
	files := 0
	err = fs.WalkDir(os.DirFS(place), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		workspace, rest, _ := strings.Cut(path, "/")
		if workspace != f.workspace.String() && workspace != other.workspace.String() {
			t.Errorf("%s begins with no workspace", path)
		}
		content, err := os.ReadFile(filepath.Join(place, path))
		for _, has := range []string{rest, string(content)} {
			if before, is := owners[has]; is && before != workspace {
				t.Errorf("%s is in another workspace, too", path)
			}
			owners[has] = workspace
		}
		return err
	})
	if err != nil || files != 2*len(odd()) {
		t.Errorf("%d files, want %d (%v)", files, 2*len(odd()), err)
	}
}

// More messages than one statement takes are stored like fewer, each once, in order.
func TestHistoryOfManyMessagesIsStoredWhole(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := make([][]byte, 10_000)
	for i := range messages {
		messages[i] = fmt.Appendf(nil, "message %d", i%9_000)
	}
	f.put(t, entries(messages...)...)
	if count, err := verify(t.Context(), f.archive, f.workspace, f.lane); err != nil || count != len(messages) {
		t.Errorf("%d of %d messages are back, %v", count, len(messages), err)
	}
	if count := f.count(t, "archive_objects"); count != 9_000 {
		t.Errorf("%d objects, want 9000: one of each message", count)
	}
}

// E2: what is done to rows inside the database is noticed.
func TestTamperingWithAManifestIsNoticed(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	shared := newFixture(t, database.DB)
	owner := database.Owner(t)
	for name, statement := range map[string]string{
		"a row taken away":       "DELETE FROM archive_entries WHERE lane_id = $1 AND index = 2",
		"the newest taken away":  "DELETE FROM archive_entries WHERE lane_id = $1 AND index = 4",
		"all taken away":         "DELETE FROM archive_entries WHERE lane_id = $1",
		"a row exchanged":        "UPDATE archive_entries SET hash = (SELECT hash FROM archive_entries WHERE lane_id = $1 AND index = 0) WHERE lane_id = $1 AND index = 3",
		"the chain cut shorter":  "UPDATE lanes SET chain_messages = 3 WHERE id = $1",
		"the chain's link":       "UPDATE lanes SET chain_link = sha256(chain_link) WHERE id = $1",
		"the chain's proof":      "UPDATE lanes SET chain_proof = NULL WHERE id = $1",
		"the link of no message": "UPDATE lanes SET chain_link = 'x' WHERE id = $1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := shared.sibling(t)
			f.archive = shared.archive
			for index := range 5 {
				f.put(t, entry(index, fmt.Appendf(nil, "message %d", index)))
			}
			if count, err := verify(t.Context(), f.archive, f.workspace, f.lane); err != nil || count != 5 {
				t.Fatalf("before: %d messages, %v", count, err)
			}
			if _, err := owner.Exec(t.Context(), statement, f.lane); err != nil {
				t.Fatal(err)
			}
			if _, err := verify(t.Context(), f.archive, f.workspace, f.lane); !errors.Is(err, archive.ErrDamaged) || !strings.Contains(err.Error(), f.lane.String()) {
				t.Errorf("got %v, want archive.ErrDamaged that names the lane", err)
			}
			f.put(t, entry(5, []byte("the lane goes on all the same")))
			if _, err := verify(t.Context(), f.archive, f.workspace, f.lane); !errors.Is(err, archive.ErrDamaged) {
				t.Errorf("after one more message: %v, want archive.ErrDamaged still", err)
			}
		})
	}
}

func TestAChainWaitsForAGapAndGoesOnBehindIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	head := func() archive.Head {
		t.Helper()
		head, err := f.archive.Head(t.Context(), f.workspace, f.lane)
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	message := func(index int) []byte { return fmt.Appendf(nil, "message %d", index) }
	want := archive.NewHead()
	if got := head(); got != want {
		t.Errorf("an empty lane has the head %+v", got)
	}
	f.put(t, entry(0, message(0)), entry(1, message(1)), entry(3, message(3)))
	if got := head().Messages; got != 2 {
		t.Errorf("%d messages are linked, want those before the gap", got)
	}
	f.put(t, entry(2, message(2)))
	for index := range 4 {
		want = want.Extend(sha256.Sum256(message(index)))
	}
	if got := head(); got != want {
		t.Errorf("the head is %+v, want %+v", got, want)
	}
}

func TestAForksChainGoesOnFromItsParents(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for index := range 4 {
		f.put(t, entry(index, fmt.Appendf(nil, "message %d", index)))
	}
	fork := *f
	fork.lane = uuid.New()
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, created_at, last_at)
			VALUES (?, ?, ?, ?, 3, now(), now())`, f.workspace, fork.lane, f.session, f.lane).Error
	})
	fork.put(t, entry(3, []byte("another message 3")))
	want := archive.NewHead()
	for _, message := range []string{"message 0", "message 1", "message 2", "another message 3"} {
		want = want.Extend(sha256.Sum256([]byte(message)))
	}
	got, err := f.archive.Head(t.Context(), f.workspace, fork.lane)
	if err != nil || got != want {
		t.Errorf("the head is %+v, %v, want %+v", got, err, want)
	}
	if count, err := verify(t.Context(), f.archive, f.workspace, fork.lane); err != nil || count != 4 {
		t.Errorf("verified %d messages, %v", count, err)
	}
}

// verify restores a whole lane and returns how many messages it has, or the first
// damage with its place.
func verify(ctx context.Context, from archive.Reader, workspace tenants.WorkspaceID, lane uuid.UUID) (messages int, err error) {
	const all = 1 << 30
	err = archive.Restore(ctx, from, workspace, lane, all, func(message archive.Restored) error {
		if message.Damage != nil {
			return fmt.Errorf("message %d of lane %s: %w", message.Index, lane, message.Damage)
		}
		messages++
		return nil
	})
	return messages, err
}
