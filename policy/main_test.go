// Package policy_test holds the tests that the repository as a whole must pass: who may import
// whom, how long files are, what the docs say, what is deployed. They read the tree.
package policy_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests at the repository's root, so that they name files from there.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
