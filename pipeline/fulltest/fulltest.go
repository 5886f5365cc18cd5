// Package fulltest divides the tests between every change and make test-all. A change runs a
// tenth of each large sweep, picked by its commit, so that successive commits cover all of it;
// make test-all runs every input and every test.
package fulltest

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

const (
	// Variable is the environment variable of make test-all. Its one value is All.
	Variable = "PALIMPSEST_TEST_ALL"
	// All makes every test and every input run.
	All = "1"

	// CommitVariable is the environment variable with the hash of the commit, in hexadecimal
	// digits. Without it the first tenth of each sweep runs.
	CommitVariable = "PALIMPSEST_TEST_COMMIT"

	// parts is the number of commits that cover a sweep.
	parts = 10
)

// Only skips a test unless everything runs. The test states its cost as the reason.
func Only(t testing.TB, reason string) {
	t.Helper()
	if !Everything() {
		t.Skipf("only in make test-all: %s", reason)
	}
}

// Everything reports whether every test and every input runs.
func Everything() bool { return os.Getenv(Variable) == All }

// Part returns the numbers from 0 to below count that run now: all of them in make test-all,
// else the tenth of this commit. It returns at least one number if count is positive.
func Part(count int) iter.Seq[int] {
	first, step := part(), parts
	if Everything() {
		first, step = 0, 1
	}
	return func(yield func(int) bool) {
		for i := min(first, max(count-1, 0)); i < count; i += step {
			if !yield(i) {
				return
			}
		}
	}
}

// part returns the part of this commit, from 0 to parts-1. The last digits of a hash are
// evenly distributed.
func part() int {
	hash := os.Getenv(CommitVariable)
	number, err := strconv.ParseUint(hash[max(len(hash)-8, 0):], 16, 32)
	if err != nil {
		return 0
	}
	return int(number % parts)
}
