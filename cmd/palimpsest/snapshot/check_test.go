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
		remove(t, dir, name)
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

// A manifest with any byte changed, cut, longer, or that of another backup is refused, even if
// what it describes is there.
func TestChangedManifestIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.backup(t, "backup")
	other, _ := b.backup(t, "other")
	sound := read(t, dir, "manifest.json")
	changed := []string{sound[:len(sound)-1], sound + "\n", "", "{}", read(t, other, "manifest.json")}
	for at := range sound {
		changed = append(changed, sound[:at]+string(sound[at]^1)+sound[at+1:])
	}
	for _, manifest := range changed {
		write(t, dir, "manifest.json", manifest)
		if err := checked(t, dir); !errors.Is(err, snapshot.ErrChanged) {
			t.Errorf("%q: %v", manifest, err)
		}
	}
	write(t, dir, "manifest.json", sound)
	for _, mac := range []string{"", "00", read(t, other, "manifest.mac")} {
		write(t, dir, "manifest.mac", mac)
		if err := checked(t, dir); !errors.Is(err, snapshot.ErrChanged) {
			t.Errorf("MAC %q: %v", mac, err)
		}
	}
	remove(t, dir, "manifest.mac")
	if err := checked(t, dir); !errors.Is(err, snapshot.ErrChanged) {
		t.Errorf("without a MAC: %v", err)
	}
	remove(t, dir, "manifest.json")
	if err := checked(t, dir); !errors.Is(err, snapshot.ErrUnfinished) {
		t.Errorf("without its manifest: %v", err)
	}
}

// Any of the keys opens a backup, and no other does.
func TestAnyOfTheKeysOpensABackup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.backup(t, "backup")
	other, key := []byte("another key"), keys()[0]
	for name, one := range map[string]struct {
		keys [][]byte
		want error
	}{
		"its own": {[][]byte{key}, nil}, "behind another": {[][]byte{other, key}, nil}, "before another": {[][]byte{key, other}, nil},
		"another": {[][]byte{other}, snapshot.ErrChanged}, "none": {nil, snapshot.ErrChanged}, "empty": {[][]byte{nil}, snapshot.ErrChanged},
	} {
		if _, err := snapshot.Read(dir, one.keys); !errors.Is(err, one.want) {
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
	}
}

// S50: A manifest that is authenticated, too, names no file but those of a backup, and no other format.
func TestManifestNamesOnlyTheFilesOfABackup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.backup(t, "backup")
	sound := read(t, dir, "manifest.json")
	for change, says := range map[[2]string]string{
		{`"name": "database.dump"`, `"name": "../database.dump"`}:   "must name database.dump",
		{`"name": "objects.sha256"`, `"name": "/etc/passwd"`}:       "must name objects.sha256",
		{`"name": "secret.key"`, `"name": "database.dump"`}:         "must name secret.key",
		{`"palimpsest_backup": 2`, `"palimpsest_backup": 3`}:        "the format 3",
		{`"palimpsest_backup": 2`, `"palimpsest_backup": 0`}:        "the format 0",
		{`"list": {`, `"others": {`}:                                "names no list of objects",
		{`"sha256": "`, `"sha256": "0`}:                             "damaged",
		{`"palimpsest_backup": 2`, `"palimpsest_backup": 2, ,`}:     "manifest",
		{`"name": "database.dump"`, `"name": "database.dump/../x"`}: "must name database.dump",
	} {
		manifest := strings.Replace(sound, change[0], change[1], 1)
		write(t, dir, "manifest.json", manifest)
		write(t, dir, "manifest.mac", snapshot.MAC(manifest, keys()[0]))
		if err := checked(t, dir); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", change[1], err, says)
		}
	}
}

// A backup of the version before is told from a changed one, and its names are checked, too.
func TestOldBackupIsUnauthenticated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.backup(t, "backup")
	old := strings.Replace(read(t, dir, "manifest.json"), `"palimpsest_backup": 2`, `"palimpsest_backup": 1`, 1)
	write(t, dir, "manifest.json", old)
	if err := checked(t, dir); !errors.Is(err, snapshot.ErrChanged) {
		t.Errorf("with the MAC of another manifest: %v", err)
	}
	remove(t, dir, "manifest.mac")
	manifest, err := snapshot.Read(dir, keys())
	if !errors.Is(err, snapshot.ErrUnauthenticated) {
		t.Errorf("old: %v", err)
	}
	if err := manifest.Check(t.Context(), dir, silent); err != nil {
		t.Error(err)
	}
	write(t, dir, "manifest.json", strings.Replace(old, "objects.sha256", "/etc/passwd", 1))
	if _, err := snapshot.Read(dir, keys()); errors.Is(err, snapshot.ErrUnauthenticated) || err == nil {
		t.Errorf("an old one that names another file: %v", err)
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
