// Package fulltest divides the tests between every change and make test-all. A change runs a tenth of each
// large sweep, selected by its commit, so that successive commits cover all of it. make test-all runs every
// input and every test.
package fulltest

import (
	"hash/fnv"
	"iter"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
)

const (
	// Variable is the environment variable of make test-all. Its only value is All.
	Variable = "PALIMPSEST_TEST_ALL"
	// All makes every test and every input run.
	All = "1"

	// CommitVariable is the environment variable with the hash of the commit, in hexadecimal digits. Without
	// it the first tenth of each sweep runs.
	CommitVariable = "PALIMPSEST_TEST_COMMIT"

	// parts is the number of commits that cover a sweep.
	parts = 10
)

// garbage is how far the heap of a test program grows between collections, in percent.
const garbage = 400

// CollectLess makes a computation-heavy test program collect garbage less often than Go's 100 percent, which
// takes an eighth of its CPU. TestMain calls it.
func CollectLess() { debug.SetGCPercent(garbage) }

// Only skips a test unless everything runs. The test states its cost as the reason.
func Only(t testing.TB, reason string) {
	t.Helper()
	if !Everything() {
		t.Skipf("only in make test-all: %s", reason)
	}
}

// Turn skips a test, except at one of every so many commits, given by of, and in make test-all. It suits slow
// tests of the whole program that each cover a small part. Without a commit, outside make test, the test
// runs.
func Turn(t testing.TB, of int) {
	t.Helper()
	if !IsTurn(t.Name(), of) {
		t.Skipf("runs at one of %d commits, and in make test-all", of)
	}
}

// IsTurn reports whether a check with a name runs now, by the same rule as Turn.
func IsTurn(name string, of int) bool {
	if os.Getenv(CommitVariable) == "" || Everything() {
		return true
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return (int(hash.Sum32())+Number())%of == 0
}

// Everything reports whether every test and every input runs.
func Everything() bool { return os.Getenv(Variable) == All }

// Part returns the numbers from 0 to below count that run now: all of them in make test-all, otherwise this
// commit's tenth. It returns at least one number if count is positive.
func Part(count int) iter.Seq[int] {
	first, step := Number()%max(min(count, parts), 1), parts
	if Everything() {
		first, step = 0, 1
	}
	return func(yield func(int) bool) {
		for i := first; i < count; i += step {
			if !yield(i) {
				return
			}
		}
	}
}

// Number returns a number of this commit, 0 without one. The last digits of a hash are evenly
// distributed.
func Number() int {
	hash := os.Getenv(CommitVariable)
	number, err := strconv.ParseUint(hash[max(len(hash)-7, 0):], 16, 28)
	if err != nil {
		return 0
	}
	return int(number)
}
