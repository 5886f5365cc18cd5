// Package sharedtest finds the recorded sessions and requests in ../shared, next to the repository. Tests
// that need the folder are skipped on machines without it, unless the environment requires it.
package sharedtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Variable is the environment variable that makes a test fail instead of being skipped if files in ../shared
// are missing. Its only value is Required.
const (
	Variable = "PALIMPSEST_TEST_SHARED"
	Required = "required"
)

// Path returns a path in ../shared.
func Path(t testing.TB, parts ...string) string {
	t.Helper()
	path := filepath.Join(folder(t), filepath.Join(parts...))
	if _, err := os.Stat(path); err != nil {
		without(t, err.Error())
	}
	return path
}

// Files returns the files in ../shared that match a pattern, in order. There is at least one.
func Files(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder(t), filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		without(t, "no file "+pattern)
	}
	slices.Sort(files)
	return files
}

// folder returns the path of ../shared.
func folder(t testing.TB) string {
	t.Helper()
	return filepath.Join(Repository(t), "..", "shared")
}

// Repository returns the root of the checkout. It works with -trimpath, which removes the checkout's path
// from the program.
func Repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd() // the folder of the tested package
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = os.ErrNotExist
		}
	}
	t.Fatalf("root of the repository: %v", err)
	return ""
}

// without ends a test that lacks files of ../shared.
func without(t testing.TB, what string) {
	t.Helper()
	switch value := os.Getenv(Variable); value {
	case "":
		t.Skipf("../shared does not have it: %s", what)
	case Required:
		t.Fatalf("../shared is required by %s: %s", Variable, what)
	default:
		t.Fatalf("%s is %q; set it to %q or unset it", Variable, value, Required)
	}
}
