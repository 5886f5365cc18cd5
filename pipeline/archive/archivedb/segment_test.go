package archivedb_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/conversation"
)

// counted is a bucket that counts what it is asked, and fails when it is told to: as for a
// process that is killed then, nothing is asked of it any more.
type counted struct {
	archive.Bucket

	requests atomic.Int64
	left     atomic.Int64 // requests until it fails; negative: it does not
}

var errKilled = errors.New("killed")

func newCounted(bucket archive.Bucket) *counted {
	c := &counted{Bucket: bucket}
	c.left.Store(-1)
	return c
}

func (c *counted) asked() error {
	c.requests.Add(1)
	if left := c.left.Load(); left == 0 || left > 0 && c.left.Add(-1) < 0 {
		c.left.Store(0)
		return errKilled
	}
	return nil
}

func (c *counted) Put(ctx context.Context, name string, content []byte) error {
	if err := c.asked(); err != nil {
		_ = c.Bucket.Put(ctx, name, content[:len(content)/2]) // it is cut off
		return err
	}
	return c.Bucket.Put(ctx, name, content)
}

func (c *counted) Range(ctx context.Context, name string, offset, length int) ([]byte, error) {
	if err := c.asked(); err != nil {
		return nil, err
	}
	return c.Bucket.Range(ctx, name, offset, length)
}

func (c *counted) Delete(ctx context.Context, name string) error {
	if err := c.asked(); err != nil {
		return err
	}
	return c.Bucket.Delete(ctx, name)
}

// torn is a bucket that keeps something else than it is given.
type torn struct{ archive.Bucket }

func (b torn) Put(ctx context.Context, name string, content []byte) error {
	content = bytes.Clone(content)
	content[len(content)-1] ^= 1
	return b.Bucket.Put(ctx, name, content)
}

// The database lets go of nothing that the bucket does not give back as it was written.
func TestWhatABucketTearsStaysInTheDatabase(t *testing.T) {
	t.Parallel()
	f, bucket := setup(t), directory(t)
	f.put(t, entries(odd()...)...)
	if moved, err := f.mover(torn{bucket}).Pass(t.Context()); err == nil || moved != 0 {
		t.Errorf("moved %d, %v", moved, err)
	}
	if got := f.pending(t, f.mover(bucket)); got != len(odd()) {
		t.Errorf("%d messages are left in the database, want %d", got, len(odd()))
	}
	if moved, err := f.mover(bucket).Pass(t.Context()); err != nil || moved != len(odd()) {
		t.Errorf("into a sound bucket: moved %d, %v", moved, err)
	}
	f.restores(t, archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket), odd())
}

// What is damaged in one workspace is told at the end, and holds up no other, however many turns
// that takes.
func TestDamageHoldsUpNoOtherWorkspace(t *testing.T) {
	t.Parallel()
	damaged := setup(t)
	other := damaged.sibling(t)
	damaged.put(t, entry(0, []byte("damaged")))
	damaged.in(t, func(tx *gorm.DB) error { return tx.Exec("UPDATE archive_objects SET bytes = 'x'").Error })
	var messages [][]byte
	for i := range 20 {
		messages = append(messages, fmt.Appendf(nil, "message %d", i))
	}
	other.put(t, entries(messages...)...)
	mover := damaged.mover(directory(t))
	mover.Segments.Originals = 1
	if moved, err := mover.Pass(t.Context()); !errors.Is(err, archive.ErrDamaged) || moved != len(messages) {
		t.Errorf("moved %d, %v; want %d and archive.ErrDamaged", moved, err, len(messages))
	}
}

// A segment is written with one request and read back with another, and neighbors are read with
// one: of 2,000 messages at most ten requests.
func TestManyMessagesMakeFewRequests(t *testing.T) {
	t.Parallel()
	f, bucket := setup(t), newCounted(directory(t))
	messages := make([][]byte, 2_000)
	for i := range messages {
		messages[i] = fmt.Appendf(nil, `{"role":"user","content":"message %d"}`, i)
	}
	f.put(t, entries(messages...)...)
	if moved, err := f.mover(bucket).Pass(t.Context()); err != nil || moved != len(messages) {
		t.Fatalf("moved %d, %v", moved, err)
	}
	if made := bucket.requests.Swap(0); made > 2 {
		t.Errorf("%d messages are moved with %d requests", len(messages), made)
	}
	reader := archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket)
	if got, err := reader.Originals(t.Context(), f.workspace, f.lane, 0, len(messages)); err != nil || len(got) != len(messages) {
		t.Fatal(len(got), err)
	}
	if made := bucket.requests.Load(); made > 8 {
		t.Errorf("%d messages are read with %d requests", len(messages), made)
	}
}

// What is little waits for more until it has waited long enough.
func TestFewMessagesWaitForMore(t *testing.T) {
	t.Parallel()
	f := setup(t)
	mover := archivedb.NewMover(f.runner, archivetest.Keys(), directory(t))
	f.put(t, entries(odd()...)...)
	if moved, err := mover.Pass(t.Context()); err != nil || moved != 0 {
		t.Errorf("moved %d at once, %v", moved, err)
	}
	if since, err := mover.WaitsSince(t.Context()); err != nil || !since.IsZero() {
		t.Errorf("they are late since %s, %v", since, err)
	}
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE archive_objects SET created_at = created_at - make_interval(secs => ?)", mover.Segments.Wait.Seconds()+1).Error
	})
	if since, err := mover.WaitsSince(t.Context()); err != nil || since.IsZero() {
		t.Errorf("they are not late, %v", err)
	}
	if moved, err := mover.Pass(t.Context()); err != nil || moved != len(odd()) {
		t.Errorf("moved %d after the wait, %v", moved, err)
	}
}

// A segment in which nothing is live stays for those who have looked it up, and for a database
// that is brought back to an earlier moment; then it goes, within a day of the deletion.
func TestRetiredSegmentsAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	f, root := setup(t), t.TempDir()
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	mover := f.mover(bucket)
	mover.Segments.Keep = archivedb.DefaultSegments().Keep
	hashes, err := f.putObjects(t, f.workspace, []byte("deleted"), []byte("kept, longer than what is deleted..."))
	if err != nil {
		t.Fatal(err)
	}
	pass := func() {
		t.Helper()
		if _, err := mover.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE archive_objects SET place = 2 WHERE hash = ?", hashes[0][:]).Error
	})
	pass()
	if volume, err := mover.Volume(t.Context()); err != nil || volume != (archivedb.Volume{Segments: 2, Bytes: 7 + 2*36 + 3*archive.SealedOverhead, Dead: 7 + 36 + 2*archive.SealedOverhead}) {
		t.Errorf("%+v, %v", volume, err)
	}
	if held := f.inBucket(t, root); len(held) != 2 {
		t.Errorf("the bucket holds %q, want the old segment beside the new", held)
	}
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE archive_segments SET retired_at = retired_at - interval '6 hours' WHERE state = 2").Error
	})
	pass()
	if held := f.inBucket(t, root); len(held) != 1 || len(held[0]) != 36+archive.SealedOverhead {
		t.Errorf("the bucket holds %q", held)
	}
	if all := archivedb.DefaultSegments(); all.Dead+all.Keep > 22*time.Hour {
		t.Errorf("what is deleted stays for %s", all.Dead+all.Keep)
	}
}

// Messages come, are deleted and come again at random, and movers are killed at random: what is
// live is always there byte for byte, and in the end nothing else is in the bucket.
func TestSegmentsHoldWhatIsLiveAndNothingElse(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	f, root := setup(t), t.TempDir()
	place, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	bucket := newCounted(place)
	reader := archivedb.New(f.runner, archivetest.Keys()).WithBucket(place)
	message := func(i int) []byte {
		return bytes.Repeat(fmt.Appendf(nil, "message %d ", i), 1+i%40)
	}
	pass := func(left int64) {
		mover := f.mover(bucket)
		mover.Segments.Bytes, mover.Segments.Originals = 2_000, 12
		if random.IntN(2) == 0 {
			mover.Segments.Dead = time.Hour
		}
		bucket.left.Store(left)
		if _, err := mover.Pass(t.Context()); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		bucket.left.Store(-1)
	}
	live := map[int]bool{}
	check := func() {
		t.Helper()
		hashes := make([]conversation.Hash, 100)
		for i := range hashes {
			hashes[i] = sha256.Sum256(message(i))
		}
		objects, err := reader.Objects(t.Context(), f.workspace, hashes)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range objects {
			switch {
			case live[i] && (got.Damage != nil || !bytes.Equal(got.Raw, message(i))):
				t.Fatalf("message %d: %d bytes, %v", i, len(got.Raw), got.Damage)
			case !live[i] && !errors.Is(got.Damage, archive.ErrNotFound):
				t.Fatalf("deleted message %d: %v", i, got.Damage)
			}
		}
	}
	for range 15 {
		for range random.IntN(20) {
			i := random.IntN(100)
			if _, err := f.putObjects(t, f.workspace, message(i)); err != nil {
				t.Fatal(err)
			}
			live[i] = true
		}
		pass(int64(random.IntN(12)) - 3)
		for i := range live {
			if random.IntN(3) == 0 {
				f.forget(t, sha256.Sum256(message(i)))
				delete(live, i)
			}
		}
		pass(int64(random.IntN(12)) - 3)
		check()
	}
	for range 3 {
		mover := f.mover(place)
		if _, err := mover.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check()
	var want int
	f.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT coalesce(sum(length), 0) FROM archive_objects").Scan(&want).Error
	})
	held := 0
	for _, content := range f.inBucket(t, root) {
		held += len(content)
	}
	if held != want {
		t.Errorf("the bucket holds %d bytes, of which %d are live", held, want)
	}
}

// forget has nobody refer to a message any more, as the deletion of a session does.
func (f *fixture) forget(t *testing.T, hash conversation.Hash) {
	t.Helper()
	f.in(t, func(tx *gorm.DB) error {
		for _, statement := range []string{
			"DELETE FROM archive_objects WHERE hash = ? AND segment_id IS NULL",
			"UPDATE archive_objects SET place = 2, bytes = NULL WHERE hash = ? AND segment_id IS NOT NULL",
		} {
			if err := tx.Exec(statement, hash[:]).Error; err != nil {
				return err
			}
		}
		return nil
	})
}

// What another process is at is left to it, until its time has run out.
func TestAWorkspaceIsMovedByOneProcessAtATime(t *testing.T) {
	t.Parallel()
	f := setup(t)
	mover := f.mover(directory(t))
	f.put(t, entries(odd()...)...)
	claimed := func(until string) {
		f.in(t, func(tx *gorm.DB) error {
			return tx.Exec("INSERT INTO archive_movers VALUES (?, now() + ?::interval) ON CONFLICT (workspace_id) DO UPDATE SET until = excluded.until", f.workspace, until).Error
		})
	}
	claimed("1 minute")
	if moved, err := mover.Pass(t.Context()); err != nil || moved != 0 {
		t.Errorf("moved %d of what another is at, %v", moved, err)
	}
	claimed("-1 second")
	if moved, err := mover.Pass(t.Context()); err != nil || moved != len(odd()) {
		t.Errorf("moved %d of what a killed process was at, %v", moved, err)
	}
}

// Whatever else waits, a workspace waits for no more than a turn of each other.
func TestWorkspacesTakeTurnsToBeMoved(t *testing.T) {
	t.Parallel()
	busy := setup(t)
	quiet := busy.sibling(t)
	if bytes.Compare(busy.workspace[:], quiet.workspace[:]) > 0 {
		busy, quiet = quiet, busy // so that the busy one comes first
	}
	messages := make([][]byte, 100)
	for i := range messages {
		messages[i] = []byte(uuid.NewString())
	}
	busy.put(t, entries(messages...)...)
	quiet.put(t, entry(0, []byte("one")))
	bucket := newCounted(directory(t))
	mover := busy.mover(bucket)
	mover.Segments.Originals = 1
	bucket.left.Store(2 * (4 + 1)) // a turn of one and the message of the other, written and read back
	if _, err := mover.Pass(t.Context()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	bucket.left.Store(-1)
	var left int
	quiet.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT count(*) FROM archive_objects WHERE place = 0").Scan(&left).Error
	})
	if left != 0 {
		t.Error("the quiet workspace waits for more than a turn of the other")
	}
}
