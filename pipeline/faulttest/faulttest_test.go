package faulttest_test

import (
	"errors"
	"net"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"palimpsest/pipeline/faulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client that keeps its connection open does not hold up the end of a test.
func TestServerEndsWithItsTest(t *testing.T) {
	t.Parallel()

	var client net.Conn
	t.Run("test with a server", func(t *testing.T) {
		address := faulttest.Serve(t, func(conn net.Conn) {
			_, _ = conn.Write([]byte("a"))
			_, _ = conn.Read(make([]byte, 1))
		})
		var err error
		if client, err = new(net.Dialer).DialContext(t.Context(), "tcp", address); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
	_ = client.Close()
}

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
