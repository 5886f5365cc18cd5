//go:build !race

package replay_test

// sessions is how many random sessions there are. They have over 10,000 bodies.
const sessions = 850
