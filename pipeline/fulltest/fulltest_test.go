package fulltest_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"palimpsest/pipeline/fulltest"
)

func TestTenCommitsCoverEverySweep(t *testing.T) {
	t.Setenv(fulltest.Variable, "")
	for _, count := range []int{0, 1, 7, 10, 99} {
		covered := map[int]bool{}
		for commit := range 10 {
			t.Setenv(fulltest.CommitVariable, fmt.Sprintf("f00dfeed%08x", commit))
			part := slices.Collect(fulltest.Part(count))
			if count > 0 && len(part) == 0 || len(part) > count/10+1 {
				t.Errorf("commit %d runs %v of %d", commit, part, count)
			}
			for _, number := range part {
				covered[number] = true
			}
		}
		if len(covered) != count {
			t.Errorf("ten commits cover %d of %d", len(covered), count)
		}
	}
}

func TestEverythingRunsAllNumbers(t *testing.T) {
	t.Setenv(fulltest.Variable, fulltest.All)
	t.Setenv(fulltest.CommitVariable, "0000000000000007")
	if numbers := slices.Collect(fulltest.Part(13)); len(numbers) != 13 {
		t.Errorf("numbers %v", numbers)
	}
}

func TestMissingOrOddCommitRunsTheFirstTenth(t *testing.T) {
	t.Setenv(fulltest.Variable, "")
	for _, commit := range []string{"", "7", "not a hash"} {
		t.Setenv(fulltest.CommitVariable, commit)
		if numbers := slices.Collect(fulltest.Part(20)); len(numbers) == 0 {
			t.Errorf("commit %q runs no input", commit)
		}
	}
}

// watched notes that a test was skipped.
type watched struct {
	testing.TB

	skipped bool
}

func (*watched) Helper() {}

func (w *watched) Skipf(string, ...any) {
	w.skipped = true
	runtime.Goexit()
}

func TestOnlySkipsUnlessEverythingRuns(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, fulltest.All: false} {
		t.Setenv(fulltest.Variable, value)
		w, done := &watched{}, make(chan struct{})
		go func() {
			defer close(done)
			fulltest.Only(w, "it takes a minute")
		}()
		<-done
		if w.skipped != want {
			t.Errorf("%s=%q: skipped %t", fulltest.Variable, value, w.skipped)
		}
	}
}
