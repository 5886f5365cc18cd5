// Package buildtest gives tests the programs that they start: the product and the doubles with versions
// pinned by deploy/tools. make test builds them once for all packages; go test of a single package needs no
// preparation.
package buildtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"palimpsest/pipeline/sharedtest"
)

// Folder is the environment variable with the folder of prebuilt programs. If it is unset, each test builds
// its own.
const Folder = "PALIMPSEST_TEST_PROGRAMS"

// Palimpsest returns the path of the product's program.
func Palimpsest(t testing.TB) string {
	t.Helper()
	return program(t, "palimpsest", ".", "./cmd/palimpsest")
}

// Versitygw returns the path of an S3 server that stores objects in a directory.
func Versitygw(t testing.TB) string {
	t.Helper()
	return program(t, "versitygw", "deploy/tools/versitygw", "github.com/versity/versitygw/cmd/versitygw")
}

// StripeMock returns the path of Stripe's own double, which checks every parameter
// against Stripe's specification.
func StripeMock(t testing.TB) string {
	t.Helper()
	return program(t, "stripe-mock", "deploy/tools", "github.com/stripe/stripe-mock")
}

// Checks returns the path of the program that validates rules, queries and manifests with their own tools.
func Checks(t testing.TB) string {
	t.Helper()
	return program(t, "checks", "deploy/tools/checks", ".")
}

// program returns the path of a program. It builds the program in a module of the project unless it is
// prebuilt.
func program(t testing.TB, name, module, main string) string {
	t.Helper()
	if folder := os.Getenv(Folder); folder != "" {
		path := filepath.Join(folder, name)
		// Stat the file, because go test caches a result only as long as the files it has looked at are the
		// same.
		if _, err := os.Stat(path); err != nil { //nolint:gosec // who runs the tests names the folder
			t.Fatalf("%s is set: %v; run make test-programs, or unset it", Folder, err)
		}
		return path
	}
	path := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(sharedtest.Repository(t), module), "build", "-o", path, main) //nolint:gosec // this repository's programs
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, said)
	}
	return path
}
