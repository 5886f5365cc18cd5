package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/cmd/palimpsest/snapshot"
)

// Each file of a backup that is missing, cut, longer, changed in place, or another file of the same
// name or size is found by the check, which names it.
func TestCheckFindsEveryFileThatIsNotTheBackups(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.backup(t, "backup")
	// The other backup differs from the first in every file.
	if _, _, err := b.DB.Accounts.SignUp(t.Context(), "eve@example.com", "", "Southbeam"); err != nil {
		t.Fatal(err)
	}
	changed := map[string]string{}
	for name := range objects() {
		changed[name] = strings.Repeat("x", len(objects()[name]))
	}
	b.bucket = newBucket(t, changed)
	source := b.source()
	source.SecretKey = strings.ToLower(source.SecretKey)
	other := filepath.Join(b.above, "other")
	if _, err := snapshot.Make(t.Context(), source, other, silent); err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{dir, other} {
		if err := checked(t, one); err != nil {
			t.Fatalf("a sound backup: %v", err)
		}
	}

	files := []string{"database.dump", "objects.sha256", "secret.key"}
	for name := range objects() {
		files = append(files, "objects/"+name)
	}
	for _, name := range files {
		sound, size := read(t, dir, name), len(read(t, dir, name))
		for harm, content := range map[string]string{
			"cut":                  sound[:size-1],
			"empty":                "",
			"longer":               sound + "x",
			"changed in place":     sound[:size/2] + string(sound[size/2]^1) + sound[size/2+1:],
			"of the other backup":  read(t, other, name),
			"another file instead": read(t, dir, files[0])[:size],
		} {
			if harm == "another file instead" && name == files[0] {
				continue
			}
			write(t, dir, name, content)
			if err := checked(t, dir); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(name, "objects/")) {
				t.Errorf("%s is %s: %v", name, harm, err)
			}
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := checked(t, dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is missing: %v", name, err)
		}
		write(t, dir, name, sound)
	}

	one, two := "objects/originals/aa/one", "objects/originals/bb/two"
	first, second := read(t, dir, one), read(t, dir, two)
	write(t, dir, one, second)
	write(t, dir, two, first)
	if err := checked(t, dir); err == nil {
		t.Error("two objects are swapped, and the check passes")
	}
	write(t, dir, one, first)
	write(t, dir, two, second)
	if err := checked(t, dir); err != nil {
		t.Errorf("repaired: %v", err)
	}
}

// The manifest decides which files belong to a backup.
func TestManifestThatDoesNotDescribeTheBackupIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.backup(t, "backup")
	sound := read(t, dir, "manifest.json")
	for says, manifest := range map[string]string{
		"format 2":        strings.Replace(sound, `"palimpsest_backup": 1`, `"palimpsest_backup": 2`, 1),
		"format 0":        "{}",
		"manifest":        sound[:len(sound)/2],
		"list of objects": strings.Replace(sound, `"list": {`, `"others": {`, 1),
		"damaged":         strings.Replace(sound, `"sha256": "`, `"sha256": "0`, 1),
	} {
		write(t, dir, "manifest.json", manifest)
		if err := checked(t, dir); err == nil || !strings.Contains(err.Error(), strings.Replace(says, "format ", "the format ", 1)) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	if err := checked(t, dir); !errors.Is(err, snapshot.ErrUnfinished) {
		t.Errorf("without its manifest: %v", err)
	}
}

// A list that leaves the backup's directory is refused although its sum is right.
func TestListOfObjectsNamesOnlyFilesOfTheBackup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, manifest := b.backup(t, "backup")
	for _, line := range []string{"00  objects/../secret.key", "00  objects//etc/passwd", "00 objects/a", "00  elsewhere/a", ""} {
		write(t, dir, "objects.sha256", line+"\n")
		manifest.Objects.List = fileOf(line + "\n")
		if err := manifest.Check(t.Context(), dir, silent); err == nil || !strings.Contains(err.Error(), "wrong line") {
			t.Errorf("%q: %v", line, err)
		}
	}
}
