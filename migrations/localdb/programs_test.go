package localdb_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/migrations/localdb"
)

func TestProgramsAreFoundInThePathAndWherePackagesPutThem(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	nine, fifteen, seventeen := plant(t, root, "9", "9.6.24"), plant(t, root, "15", "15.14"), plant(t, root, "17", "17beta1")
	client := filepath.Join(root, "client") // without a server, as client packages are
	write(t, filepath.Join(client, "initdb"), "#!/bin/sh\n")
	linked := filepath.Join(root, "linked")
	if err := os.Mkdir(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(fifteen, "initdb"), filepath.Join(linked, "initdb")); err != nil {
		t.Fatal(err)
	}

	path := strings.Join([]string{client, linked, filepath.Join(root, "nowhere")}, string(os.PathListSeparator))
	found := localdb.Installed(t.Context(), path, []string{filepath.Join(root, "9", "bin"), filepath.Join(root, "1?", "bin")})
	if want := []string{seventeen, fifteen, fifteen, nine}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v: the newest first", found, want)
	}
}

func TestMissingProgramsAreExplained(t *testing.T) {
	t.Parallel()
	if found := localdb.Installed(t.Context(), t.TempDir(), []string{filepath.Join(t.TempDir(), "*")}); len(found) != 0 {
		t.Fatalf("found %v in empty directories", found)
	}
	for _, choose := range []string{"", "15"} {
		if _, err := localdb.Choose(nil, choose); !errors.Is(err, localdb.ErrNotInstalled) {
			t.Errorf("nothing installed: %v, want ErrNotInstalled", err)
		}
	}
}

func TestProgramsMatchTheVersionThatMadeTheCluster(t *testing.T) {
	t.Parallel()
	installed := map[string]int{"/seventeen": 17, "/fifteen": 15}

	for version, want := range map[string]string{"": "/seventeen", "17": "/seventeen", "15": "/fifteen"} {
		if got, err := localdb.Choose(installed, version); err != nil || got != want {
			t.Errorf("version %q: %s (%v), want %s", version, got, err, want)
		}
	}
	if _, err := localdb.Choose(installed, "16"); err == nil || !strings.Contains(err.Error(), "install version 16") {
		t.Errorf("version 16: %v", err)
	}
	if _, err := localdb.Choose(map[string]int{"/fourteen": 14}, ""); !errors.Is(err, localdb.ErrNotInstalled) {
		t.Errorf("only version 14: %v, want ErrNotInstalled", err)
	}
}

// plant makes a directory with programs that say they have a version.
func plant(t *testing.T, root, name, version string) string {
	t.Helper()
	dir := filepath.Join(root, name, "bin")
	write(t, filepath.Join(dir, "initdb"), "#!/bin/sh\n")
	write(t, filepath.Join(dir, "postgres"), "#!/bin/sh\necho 'postgres (PostgreSQL) "+version+" (Debian)'\n")
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestProgramsFitTheirServer(t *testing.T) {
	t.Parallel()
	path, err := localdb.Program(t.Context(), os.Getenv("PATH"), "pg_dump", 15)
	if err != nil || filepath.Base(path) != "pg_dump" {
		t.Errorf("pg_dump is %s, %v", path, err)
	}
	if path, err := localdb.Program(t.Context(), os.Getenv("PATH"), "pg_missing", 15); err == nil {
		t.Errorf("a program that does not exist is %s", path)
	}
}
