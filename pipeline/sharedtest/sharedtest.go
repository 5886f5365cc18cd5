// Package sharedtest finds the recorded sessions and requests that lie in ../shared, beside
// the repository. Not every machine has that folder: a test that needs it is skipped there,
// unless the environment says that it's required.
package sharedtest

import (
	"os"
	"path/filepath"
	"runtime"
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
	path := filepath.Join(folder(), filepath.Join(parts...))
	if _, err := os.Stat(path); err != nil {
		without(t, err.Error())
	}
	return path
}

// Files returns the files in ../shared that a pattern matches, at least one, in order.
func Files(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder(), filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		without(t, "no file "+pattern)
	}
	slices.Sort(files)
	return files
}

// folder returns where ../shared lies, whichever package is tested.
func folder() string {
	_, file, _, _ := runtime.Caller(0) //nolint:dogsled // the file alone is wanted
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
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
