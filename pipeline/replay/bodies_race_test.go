//go:build race

package replay_test

// bodies is how many random bodies are judged; with the race detector each takes
// about ten times as long.
const bodies = 1_000
