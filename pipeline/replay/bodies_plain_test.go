//go:build !race

package replay_test

// bodies is how many random bodies are judged.
const bodies = 10_000
