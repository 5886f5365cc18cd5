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

	name    string
	skipped bool
}

func (*watched) Helper() {}

func (w *watched) Name() string { return w.name }

func (w *watched) Skipf(string, ...any) {
	w.skipped = true
	runtime.Goexit()
}

// skips reports whether a test of a name is skipped.
func skips(name string, test func(t testing.TB)) bool {
	w, done := &watched{name: name}, make(chan struct{})
	go func() {
		defer close(done)
		test(w)
	}()
	<-done
	return w.skipped
}

func TestOnlySkipsUnlessEverythingRuns(t *testing.T) {
	for value, want := range map[string]bool{"": true, "0": true, fulltest.All: false} {
		t.Setenv(fulltest.Variable, value)
		if got := skips("TestSlow", func(t testing.TB) { t.Helper(); fulltest.Only(t, "it takes a minute") }); got != want {
			t.Errorf("%s=%q: skipped %t", fulltest.Variable, value, got)
		}
	}
}

func TestSuccessiveCommitsTakeTurns(t *testing.T) {
	turn := func(t testing.TB) { t.Helper(); fulltest.Turn(t, 3) }
	t.Setenv(fulltest.Variable, "")
	for _, name := range []string{"TestOne", "TestTwo", "TestThree"} {
		ran := 0
		for commit := range 3 {
			t.Setenv(fulltest.CommitVariable, fmt.Sprintf("f00dfeed%08x", commit))
			if !skips(name, turn) {
				ran++
			}
		}
		if ran != 1 {
			t.Errorf("%s runs at %d of three commits", name, ran)
		}
	}
	t.Setenv(fulltest.CommitVariable, "")
	if skips("TestOne", turn) || skips("TestTwo", turn) || skips("TestThree", turn) {
		t.Error("a test is skipped without a commit")
	}
	t.Setenv(fulltest.Variable, fulltest.All)
	t.Setenv(fulltest.CommitVariable, "7")
	if skips("TestOne", turn) || skips("TestTwo", turn) || skips("TestThree", turn) {
		t.Error("a test is skipped where everything runs")
	}
}
