package faulttest_test

import (
	"errors"
	"slices"
	"testing"

	"palimpsest/pipeline/faulttest"
)

// attempt makes three calls, which write their numbers down, and makes those again that failed.
func attempt(calls *faulttest.Calls) (done []int, failed int) {
	for call := range 3 {
		write := func() error {
			done = append(done, call)
			return nil
		}
		if err := calls.Do(write); err == nil {
			continue
		}
		failed++
		calls.Repair()
		_ = calls.Do(write)
	}
	return done, failed
}

func TestWalkFailsEachCallInEveryWay(t *testing.T) {
	t.Parallel()
	var twice []int
	runs := 0
	faulttest.Walk(t, faulttest.Err, func(t *testing.T, calls *faulttest.Calls) {
		done, failed := attempt(calls)
		if runs++; (runs > 1) != (failed == 1) {
			t.Errorf("run %d: %d calls failed", runs, failed)
		}
		if len(done) > 3 {
			twice = append(twice, done[failed])
		}
		if !slices.Equal(slices.Compact(done), []int{0, 1, 2}) {
			t.Errorf("run %d: done %v", runs, done)
		}
	})
	if runs != 1+3*3 || len(twice) != 3 {
		t.Errorf("%d runs; %d calls took effect without an answer", runs, len(twice))
	}
}

func TestCallsFailFromOneOnUntilTheyAreRepaired(t *testing.T) {
	t.Parallel()
	var none *faulttest.Calls
	if err := none.Do(func() error { return nil }); err != nil {
		t.Errorf("without Calls: %v", err)
	}
	planned := errors.New("planned")
	calls := faulttest.FailAt(2, planned)
	var got []bool
	for range 4 {
		got = append(got, errors.Is(calls.Do(func() error { return nil }), planned))
	}
	calls.Repair()
	if err := calls.Do(func() error { return nil }); err != nil || !slices.Equal(got, []bool{false, true, true, true}) {
		t.Errorf("calls fail: %v; after the repair: %v", got, err)
	}
}
