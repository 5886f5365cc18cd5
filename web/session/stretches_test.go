package session

import (
	"slices"
	"testing"
)

// A run of messages with one row for all of them is not read between messages that have a row each,
// unless it is short.
func TestLongRunsAreNotReadBetweenMessages(t *testing.T) {
	t.Parallel()
	page := []span{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 5000}, {From: 5000, To: 5001}, {From: 5001, To: 5040}, {From: 5040, To: 5041}}
	for gap, want := range map[int][][2]int{0: {{0, 2}, {5000, 5001}, {5040, 5041}}, 100: {{0, 2}, {5000, 5041}}} {
		if got := stretches(page, gap, func(span) bool { return true }); !slices.Equal(got, want) {
			t.Errorf("gap %d: %v is read, want %v", gap, got, want)
		}
	}
}
