package sessiondb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
)

func TestOtherReplicasAreToldOfEpochsAndDeletions(t *testing.T) {
	t.Parallel()
	f := setup(t)
	told := make(chan string, 10)
	listener := f.db.DB.NewListener(slog.New(slog.DiscardHandler))
	listener.Handle(sessiondb.Channel, func(payload string) { told <- payload }, nil)
	if err := listener.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Stop)

	c := f.conversationOf(6)
	c.commit(t, c.projection(1, 4))
	if got, want := <-told, fmt.Sprintf("%s/%s/1", f.scope.Workspace, c.lane); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	if err := f.store.Commit(t.Context(), c.update(), c.projection(1, 5)); !errors.Is(err, session.ErrOvertaken) {
		t.Fatal(err)
	}
	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, c.session); err != nil {
		t.Fatal(err)
	}
	if got, want := <-told, fmt.Sprintf("%s/%s/0", f.scope.Workspace, c.lane); got != want {
		t.Errorf("told %s, want %s: no one hears of what was rolled back", got, want)
	}
}

func TestADeletionReachesTheBucket(t *testing.T) {
	t.Parallel()
	f := setup(t)
	root := t.TempDir()
	bucket, err := blob.NewDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	mover := archivedb.NewMover(f.runner, archivetest.Keys(), bucket)
	mover.Segments.Originals, mover.Segments.Wait, mover.Segments.Keep = 1, 0, 0
	inBucket := func() int {
		t.Helper()
		if _, err := mover.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(filepath.Join(root, f.scope.Workspace.String()))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	c, other := f.newClient(), f.newClient()
	c.say("shared by both", "only here")
	other.say("shared by both")
	c.record(t)
	other.record(t)
	if got := inBucket(); got != 2 {
		t.Fatalf("the bucket holds %d objects, want 2", got)
	}
	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, c.session); err != nil {
		t.Fatal(err)
	}
	if got := inBucket(); got != 1 {
		t.Errorf("the bucket holds %d objects, want 1", got)
	}
	if got := f.count(t, "archive_objects"); got != 1 {
		t.Errorf("the database knows %d objects, want 1", got)
	}
	original, err := f.archive.WithBucket(bucket).Original(t.Context(), f.scope.Workspace, other.lane, 0)
	if err != nil || string(original.Raw) != "shared by both" {
		t.Errorf("the other session's message: %q, %v", original.Raw, err)
	}
}

func TestADeletionTakesNothingFromWhoStoresTheSameMeanwhile(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := []string{"one", "two", "three", "four", "five", "six", "seven", "eight"}
	for range 20 {
		gone, staying := f.newClient(), f.newClient()
		gone.say(messages...)
		staying.say(messages...)
		gone.record(t)
		seen := staying.update()
		ctx := context.WithoutCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() {
			if err := f.store.Browser().Delete(ctx, f.scope.Workspace, gone.session); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := f.store.Record(ctx, f.scope.Workspace, []session.Update{seen}); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		for i, want := range messages {
			if got, err := f.archive.Original(t.Context(), f.scope.Workspace, staying.lane, i); err != nil || string(got.Raw) != want {
				t.Fatalf("message %d: %q, %v", i, got.Raw, err)
			}
		}
		if _, err := f.archive.Original(t.Context(), f.scope.Workspace, gone.lane, 0); !errors.Is(err, archive.ErrNotFound) {
			t.Fatalf("the deleted session's message: %v", err)
		}
		if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, staying.session); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.count(t, "archive_objects"); got != 0 {
		t.Errorf("%d objects are left of nobody", got)
	}
}
