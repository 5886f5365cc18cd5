//go:build race

package replay_test

// sessions is how many random sessions there are; with the race detector each takes about
// ten times as long.
const sessions = 85
