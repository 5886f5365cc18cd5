package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/cmd/palimpsest/snapshot"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
)

// fileOf describes the list of objects with some content.
func fileOf(content string) *snapshot.File {
	sum := sha256.Sum256([]byte(content))
	return &snapshot.File{Name: "objects.sha256", Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

// A restore that fails at any object leaves the database empty, and the next one completes it.
func TestRestoreThatFailsAtOneObjectIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, manifest := b.backup(t, "backup")
	write(t, dir, "objects/extra", "not part of the backup")
	empty, into := dbtest.Empty(t), newBucket(t, nil)
	target := snapshot.Target{OwnerURL: empty.OwnerURL, Bucket: into}
	for nth := 1; nth <= len(objects()); nth++ {
		into.fail("Put", nth, errPlanned)
		if nth > 1 { // the objects before it are there already
			into.fail("Get", nth-1, errPlanned)
		}
		if err := manifest.Restore(t.Context(), dir, target, silent); !errors.Is(err, errPlanned) {
			t.Fatalf("failure %d: %v", nth, err)
		}
		if !isEmpty(t, empty.OwnerURL) {
			t.Fatalf("failure %d left tables", nth)
		}
	}
	into.fail("", 0, nil)
	if err := manifest.Restore(t.Context(), dir, target, silent); err != nil {
		t.Fatal(err)
	}
	if held := into.holds(t); !maps.Equal(held, objects()) {
		t.Errorf("the bucket holds %v", held)
	}
	var workspaces int
	if err := empty.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM workspaces").Scan(&workspaces); err != nil || workspaces != 1 {
		t.Errorf("%d workspaces, %v", workspaces, err)
	}
	if err := manifest.Restore(t.Context(), dir, target, silent); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second restore: %v", err)
	}
}

// Another object under a name of the backup is an error whatever its size, and stays as it is.
func TestRestoreRefusesOtherObjectUnderTheSameName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, manifest := b.backup(t, "backup")
	empty := dbtest.Empty(t)
	for name, content := range objects() {
		for what, other := range map[string]string{"of the same size": strings.Repeat("x", len(content)), "a part": content[:1], "longer": content + "x", "empty": ""} {
			into := newBucket(t, map[string]string{name: other})
			err := manifest.Restore(t.Context(), dir, snapshot.Target{OwnerURL: empty.OwnerURL, Bucket: into}, silent)
			if err == nil || !strings.Contains(err.Error(), "another object") || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if held := into.holds(t)[name]; held != other {
				t.Errorf("%s, %s: replaced by %q", name, what, held)
			}
		}
	}
	if !isEmpty(t, empty.OwnerURL) {
		t.Error("the database is not empty")
	}
}

// A restored database that holds other rows than the manifest counts is reported.
func TestRestoreComparesTheDatabaseWithTheManifest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	source := b.source()
	source.Bucket = nil
	dir := filepath.Join(b.above, "backup")
	sound, err := snapshot.Make(t.Context(), source, dir, silent)
	if err != nil {
		t.Fatal(err)
	}
	if err := sound.Compare(t.Context(), b.OwnerURL); err != nil {
		t.Errorf("the same database: %v", err)
	}
	for name, change := range map[string]func(*snapshot.Manifest){
		"workspaces": func(m *snapshot.Manifest) { m.Counts.Workspaces++ },
		"sessions":   func(m *snapshot.Manifest) { m.Counts.Sessions++ },
		"requests":   func(m *snapshot.Manifest) { m.Counts.Exchanges++ },
		"migration":  func(m *snapshot.Manifest) { m.Migration-- },
	} {
		manifest := sound
		change(&manifest)
		if err := manifest.Compare(t.Context(), b.OwnerURL); err == nil || !strings.Contains(err.Error(), "the backup's held") {
			t.Errorf("%s: %v", name, err)
		}
	}
	sound.Counts.Sessions++
	if err := sound.Restore(t.Context(), dir, snapshot.Target{OwnerURL: dbtest.Empty(t).OwnerURL}, silent); err == nil || !strings.Contains(err.Error(), "the backup's held") {
		t.Errorf("restore: %v", err)
	}
}

// Objects that are kept in a bucket need one, whether they are in the backup or not.
func TestRestoreNeedsTheBucketThatTheInstallationHad(t *testing.T) {
	t.Parallel()
	empty := dbtest.Empty(t)
	for _, where := range []string{snapshot.ObjectsHere, snapshot.ObjectsElsewhere} {
		manifest := snapshot.Manifest{Version: snapshot.Version, Objects: snapshot.Objects{Where: where}}
		if err := manifest.Restore(t.Context(), t.TempDir(), snapshot.Target{OwnerURL: empty.OwnerURL}, silent); err == nil || !strings.Contains(err.Error(), "PALIMPSEST_BLOB_URL") {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// A backup that cannot read an object, or the list of objects, leaves no directory.
func TestBackupThatFailsAtOneObjectLeavesNoDirectory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for method, calls := range map[string][]int{"Get": {2}, "Names": {1, len(objects())}} {
		for _, nth := range calls {
			b.bucket.fail(method, nth, errPlanned)
			if _, err := snapshot.Make(t.Context(), b.source(), filepath.Join(b.above, "backup"), silent); !errors.Is(err, errPlanned) {
				t.Errorf("%s %d fails: %v", method, nth, err)
			}
			if left, err := os.ReadDir(b.above); err != nil || len(left) > 0 {
				t.Fatalf("%s %d left %v, %v", method, nth, left, err)
			}
		}
	}
}

// An object that is deleted while the backup runs is left out of it, and of its counts.
func TestBackupLeavesOutAnObjectThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.bucket.fail("Get", 2, archive.ErrNotFound)
	dir, manifest := b.backup(t, "backup")
	if lines := strings.Count(read(t, dir, "objects.sha256"), "\n"); manifest.Objects.Count != 2 || lines != 2 {
		t.Errorf("%d objects and %d lines, want the two that are left", manifest.Objects.Count, lines)
	}
	if err := checked(t, dir); err != nil {
		t.Error(err)
	}
}

// A backup overwrites no directory, and no backup that is being made.
func TestBackupOverwritesNoDirectory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"taken", "begun.partial"} {
		if err := os.Mkdir(filepath.Join(b.above, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(b.above, name), "kept", "by someone")
		if _, err := snapshot.Make(t.Context(), b.source(), filepath.Join(b.above, strings.TrimSuffix(name, ".partial")), silent); err == nil {
			t.Errorf("%s: no error", name)
		}
		if read(t, filepath.Join(b.above, name), "kept") != "by someone" {
			t.Errorf("%s: changed", name)
		}
	}
}
