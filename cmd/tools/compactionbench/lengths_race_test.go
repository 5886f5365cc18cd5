//go:build race

package compactionbench_test

// lengths are the turns of the sessions that targets are checked on; with the race
// detector each takes about ten times as long.
func lengths() []int { return []int{85, 200} }
