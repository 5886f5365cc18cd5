// Package sharedtest finds the recorded sessions and requests that lie in ../shared, beside
// the repository. Not every machine has that folder: a test that needs it is skipped there,
// unless the environment says that it's required.
package sharedtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Variable is the environment variable that makes a test fail, not be skipped, if what it
// needs of ../shared is missing. Its one value is Required.
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

// Files returns the files in ../shared that a pattern matches, at least one, in order.
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

// Repository returns the root of the checkout. It works with -trimpath, which leaves the checkout's
// path out of the program.
func Repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd() // the folder of the package that is tested
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

// without ends a test that lacks something of ../shared.
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
