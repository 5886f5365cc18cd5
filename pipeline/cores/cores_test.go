package cores_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/cores"
)

func TestEachNumberComesOnce(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 7, 8, 15, 16, 17, 1000} {
		met := make([]int, count)
		if err := cores.Each(count, 8, func(i int) error { met[i]++; return nil }); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(met, func(times int) bool { return times != 1 }) {
			t.Errorf("of %d numbers each came so often: %v", count, met)
		}
	}
}

func TestTheFirstErrorIsReturned(t *testing.T) {
	t.Parallel()
	for _, count := range []int{5, 500} {
		err := cores.Each(count, 8, func(i int) error {
			if i >= 3 {
				return fmt.Errorf("number %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "number 3" {
			t.Errorf("of %d numbers: %v, want number 3", count, err)
		}
	}
}

//nolint:paralleltest // it changes how many cores there are
func TestAPanicOnAnotherCoreIsAnError(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	first := errors.New("the first")
	for want, at := range map[string]int{"panicked: 100": 400, "the first": 50} {
		err := cores.Each(500, 8, func(i int) error {
			switch i {
			case at:
				return first
			case 100:
				panic(i)
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
