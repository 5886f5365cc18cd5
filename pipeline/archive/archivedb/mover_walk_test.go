package archivedb_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/faulttest"
	"palimpsest/tenants"
)

// faultyRunner is a database of which a transaction of one workspace fails.
type faultyRunner struct {
	batchdb.TxRunner

	workspace tenants.WorkspaceID
	calls     *faulttest.Calls
}

func (r faultyRunner) InTenant(ctx context.Context, tenant tenants.Tenant, work func(tx *gorm.DB) error) error {
	run := func() error { return r.TxRunner.InTenant(ctx, tenant, work) }
	if tenant.Workspace() != r.workspace {
		return run()
	}
	return r.calls.Do(run)
}

// faultyBucket is a bucket of which a call fails.
type faultyBucket struct {
	archive.Bucket

	calls *faulttest.Calls
}

func (b faultyBucket) Put(ctx context.Context, name string, content []byte) error {
	return b.calls.Do(func() error { return b.Bucket.Put(ctx, name, content) })
}

func (b faultyBucket) Range(ctx context.Context, name string, offset, length int) (content []byte, err error) {
	err = b.calls.Do(func() (err error) {
		content, err = b.Bucket.Range(ctx, name, offset, length)
		return err
	})
	return content, err
}

func (b faultyBucket) Delete(ctx context.Context, name string) error {
	return b.calls.Do(func() error { return b.Bucket.Delete(ctx, name) })
}

// S20: a pass moves, compacts and deletes, and whichever call of the database or the bucket fails, each live
// message can be read. The next passes end as those without a fault.
func TestPassLosesNoMessageWhicheverCallFails(t *testing.T) {
	t.Parallel()
	f, root, runs := setup(t), t.TempDir(), 0
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	faulttest.Walk(t, faulttest.Err, func(t *testing.T, calls *faulttest.Calls) {
		runs++
		message := func(i int) []byte { return fmt.Appendf(nil, "message %d of run %d", i, runs) }
		f.passWithFault(t, bucket, calls, message)
		var held, segments, live, rows int
		for _, content := range f.inBucket(t, root) {
			held += len(content)
		}
		f.in(t, func(tx *gorm.DB) error {
			return tx.Raw(`SELECT (SELECT count(*) FROM archive_segments WHERE state <> 1 OR dead_since IS NOT NULL), (SELECT sum(live) FROM archive_segments),
				(SELECT sum(length) FROM archive_objects WHERE place = 1)`).Row().Scan(&segments, &live, &rows)
		})
		if segments > 0 || live != held || rows != held {
			t.Errorf("%d segments are left to deal with; the bucket has %d bytes, of which %d count as live and %d belong to messages", segments, held, live, rows)
		}
		for i := range 12 {
			f.forget(t, sha256.Sum256(message(i)))
		}
		if err := f.passOver(t, f.runner, bucket); err != nil || len(f.inBucket(t, root)) > 0 {
			t.Errorf("without live messages the bucket has %q, %v", f.inBucket(t, root), err)
		}
	})
}

// passOver makes a pass with segments of three messages.
func (f *fixture) passOver(t *testing.T, runner batchdb.TxRunner, bucket archive.Bucket) error {
	t.Helper()
	mover := archivedb.NewMover(runner, archivetest.Keys(), bucket)
	mover.Segments.Originals, mover.Segments.Wait, mover.Segments.Dead, mover.Segments.Keep = 3, 0, 0, 0
	_, err := mover.Pass(t.Context())
	return err
}

// passWithFault makes passes over a workspace that has messages to move, two segments with dead bytes in them
// and two that were left half written. A call of the first pass may fail.
func (f *fixture) passWithFault(t *testing.T, bucket archive.Bucket, calls *faulttest.Calls, message func(i int) []byte) {
	t.Helper()
	var hashes []conversation.Hash
	put := func(from, to int) {
		var messages [][]byte
		for i := from; i < to; i++ {
			messages = append(messages, message(i))
		}
		stored, err := f.putObjects(t, f.workspace, messages...)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, stored...)
	}
	put(0, 6)
	if err := f.passOver(t, f.runner, bucket); err != nil {
		t.Fatal(err)
	}
	put(6, 12)
	if err := f.passOver(t, f.runner, torn{bucket}); err == nil {
		t.Fatal("a segment that was not written whole is read from")
	}
	dead := map[int]bool{0: true, 4: true} // messages are stored in the order of their hashes, so in either segment or both
	for i := range dead {
		f.forget(t, sha256.Sum256(message(i)))
	}
	check := func(when string) {
		t.Helper()
		reader := archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket)
		objects, err := reader.Objects(t.Context(), f.workspace, hashes)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range objects {
			if dead[i] && !errors.Is(got.Damage, archive.ErrNotFound) || !dead[i] && string(got.Raw) != string(message(i)) {
				t.Errorf("message %d %s: %q, %v", i, when, got.Raw, got.Damage)
			}
		}
	}
	failed := f.passOver(t, faultyRunner{f.runner, f.workspace, calls}, faultyBucket{bucket, calls})
	check("after the fault")
	if failed == nil && f.unmoved(t) > 0 {
		t.Error("the pass ends without an error, and messages are not moved")
	}
	calls.Repair()
	f.in(t, func(tx *gorm.DB) error { return tx.Exec("UPDATE archive_movers SET until = '-infinity'").Error })
	for range 2 {
		if err := f.passOver(t, f.runner, bucket); err != nil {
			t.Error(err)
		}
	}
	check("after the next passes")
}

// meeting is a bucket that calls the other process at the moments when the two can get in each other's way.
type meeting struct {
	archive.Bucket

	written func() // a segment is in the bucket and was read back
	deleted func() // a segment was deleted
}

func (b meeting) Range(ctx context.Context, name string, offset, length int) ([]byte, error) {
	content, err := b.Bucket.Range(ctx, name, offset, length)
	if b.written != nil {
		b.written()
	}
	return content, err
}

func (b meeting) Delete(ctx context.Context, name string) error {
	err := b.Bucket.Delete(ctx, name)
	if b.deleted != nil {
		b.deleted()
	}
	return err
}

// S20: a process takes a workspace over whose mover is slow, not dead. It deletes the segment that the slow one
// has just written, and the slow one may go on at any moment of that.
func TestSlowMoverLosesNothingToTheNextOne(t *testing.T) {
	t.Parallel()
	for name, isBefore := range map[string]bool{"it goes on before the segment is forgotten": true, "it goes on afterwards": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, bucket := setup(t), directory(t)
			messages := [][]byte{[]byte("first"), []byte("second")}
			f.put(t, entries(messages...)...)
			goOn, ended := make(chan struct{}), make(chan struct{})
			written := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = f.mover(meeting{Bucket: bucket, written: func() { close(written); <-goOn }}).Pass(context.WithoutCancel(t.Context()))
			}()
			<-written
			f.in(t, func(tx *gorm.DB) error { return tx.Exec("UPDATE archive_movers SET until = '-infinity'").Error })
			next := meeting{Bucket: bucket}
			if isBefore {
				met := false
				next.deleted = func() {
					if !met {
						met = true
						close(goOn)
						<-ended
					}
				}
			}
			_, err := f.mover(next).Pass(t.Context())
			if !isBefore {
				close(goOn)
				<-ended
			}
			if err != nil {
				t.Error(err)
			}
			for range 2 {
				if _, err := f.mover(bucket).Pass(t.Context()); err != nil {
					t.Error(err)
				}
			}
			f.restores(t, archivedb.New(f.runner, archivetest.Keys()).WithBucket(bucket), messages)
		})
	}
}
