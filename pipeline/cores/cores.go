// Package cores distributes work over the machine's cores.
package cores

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do with every number from 0 to count, excluded: in order, or on all cores if there are several
// runs of run numbers for them. It returns the error of the lowest number that has one; later numbers may
// have been skipped. A panic on another core becomes an error, because no other code would recover from it.
func Each(count, run int, do func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), count/run)
	if workers < 2 {
		return each(0, count, do)
	}
	var (
		group  sync.WaitGroup
		taken  atomic.Int64
		failed atomic.Bool
		errs   = make([]error, (count+run-1)/run) // of each run
	)
	for range workers {
		group.Go(func() {
			for !failed.Load() {
				from := int(taken.Add(1)-1) * run
				if from >= count {
					return
				}
				if err := recovered(from, min(from+run, count), do); err != nil {
					errs[from/run] = err
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func recovered(from, to int, do func(i int) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panicked: %v", value)
		}
	}()
	return each(from, to, do)
}

func each(from, to int, do func(i int) error) error {
	for i := from; i < to; i++ {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}
