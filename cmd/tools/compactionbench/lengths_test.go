//go:build !race

package compactionbench_test

// lengths are the turns of the sessions that targets are checked on.
func lengths() []int { return []int{85, 200, 600} }
