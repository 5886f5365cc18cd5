package ipc

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// runTurns is how many turns a core takes at a time.
const runTurns = 8

// each does something for turns, on all cores at once where they are worth it. It may
// change nothing but its turn.
func (p *planner) each(turns []*turn, do func(*turn) error) error {
	workers := min(runtime.GOMAXPROCS(0), len(turns)/runTurns)
	if workers < 2 || p.memory != nil {
		for _, t := range turns {
			if err := do(t); err != nil {
				return err
			}
		}
		return nil
	}
	var group errgroup.Group
	var taken atomic.Int64
	for range workers {
		group.Go(func() (err error) {
			defer func() {
				if value := recover(); value != nil { // nobody else would
					err = fmt.Errorf("panicked: %v", value)
				}
			}()
			for {
				to := int(taken.Add(runTurns))
				for _, t := range turns[min(to-runTurns, len(turns)):min(to, len(turns))] {
					if err := do(t); err != nil {
						return err
					}
				}
				if to >= len(turns) {
					return nil
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("plan on %d cores: %w", workers, err)
	}
	return nil
}
