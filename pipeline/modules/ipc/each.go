package ipc

import (
	"fmt"

	"palimpsest/pipeline/cores"
)

// runTurns is how many turns a core takes at a time.
const runTurns = 8

// each does something for turns, on all cores at once where they are worth it. It may
// change nothing but its turn.
func (p *planner) each(turns []*turn, do func(*turn) error) error {
	run := runTurns
	if p.memory != nil {
		run = len(turns) + 1 // one core: the memory is for one at a time
	}
	if err := cores.Each(len(turns), run, func(i int) error { return do(turns[i]) }); err != nil {
		return fmt.Errorf("plan %d turns: %w", len(turns), err)
	}
	return nil
}
