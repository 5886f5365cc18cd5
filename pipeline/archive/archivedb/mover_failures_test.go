package archivedb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
)

var errRefused = errors.New("AccessDenied")

// everything is what a bucket refuses that is away.
const everything = "*"

// refusingBucket refuses some of what it is asked for.
type refusingBucket struct {
	archive.Bucket

	refuses string // to write what begins with this; empty refuses nothing
	deletes bool   // refuses to delete

	mu    sync.Mutex
	asked []string // names that it was to write
}

func (b *refusingBucket) Put(ctx context.Context, name string, content []byte) error {
	b.mu.Lock()
	b.asked = append(b.asked, name)
	b.mu.Unlock()
	if b.refuses == everything || b.refuses != "" && strings.HasPrefix(name, b.refuses) {
		return errRefused
	}
	return b.Bucket.Put(ctx, name, content)
}

func (b *refusingBucket) Delete(ctx context.Context, name string) error {
	if b.deletes {
		return errRefused
	}
	return b.Bucket.Delete(ctx, name)
}

// unmoved returns how many originals of a workspace are in the database.
func (f *fixture) unmoved(t *testing.T) int {
	t.Helper()
	var count int
	f.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT count(*) FROM archive_objects WHERE workspace_id = ? AND place = 0", f.workspace).Scan(&count).Error
	})
	return count
}

// A segment that cannot be deleted keeps neither its own workspace nor another from being moved.
func TestSegmentThatCannotBeDeletedStopsNoMove(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.sibling(t)
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO archive_segments (workspace_id, id) VALUES (?, ?)", f.workspace, uuid.New()).Error
	})
	f.put(t, entries(odd()...)...)
	other.put(t, entries(odd()...)...)
	if _, err := f.mover(&refusingBucket{Bucket: directory(t), deletes: true}).Pass(t.Context()); !errors.Is(err, errRefused) {
		t.Errorf("the pass says nothing of what failed: %v", err)
	}
	if own, others := f.unmoved(t), other.unmoved(t); own+others > 0 {
		t.Errorf("%d and %d originals were not moved", own, others)
	}
}

// A bucket that refuses one workspace's segments gets those of the others.
func TestWorkspaceThatCannotBeMovedStopsNoOther(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(odd()...)...)
	var others []*fixture
	for range 12 {
		others = append(others, f.sibling(t))
		others[len(others)-1].put(t, entries([]byte("x"))...)
	}
	bucket := &refusingBucket{Bucket: directory(t), refuses: f.workspace.String()}
	if _, err := f.mover(bucket).Pass(t.Context()); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), f.workspace.String()) {
		t.Errorf("the pass ends with %v, want the workspace and %v", err, errRefused)
	}
	for _, other := range others {
		if left := other.unmoved(t); left > 0 {
			t.Errorf("%d originals of another workspace were not moved", left)
		}
	}
	if f.unmoved(t) == 0 {
		t.Error("what the bucket refused is gone from the database")
	}
}

// A bucket that refuses everything is not asked for each workspace.
func TestPassEndsWhenTheBucketIsAway(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const workspaces = 40
	for range workspaces {
		f.sibling(t).put(t, entries([]byte("x"))...)
	}
	bucket := &refusingBucket{Bucket: directory(t), refuses: everything}
	if _, err := f.mover(bucket).Pass(t.Context()); !errors.Is(err, errRefused) {
		t.Errorf("the pass ends with %v", err)
	}
	if len(bucket.asked) == 0 || len(bucket.asked) > workspaces/2 {
		t.Errorf("the bucket was asked to store %d segments of %d workspaces", len(bucket.asked), workspaces)
	}
}
