package replay_test

import (
	"testing"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/replay"
)

// sentAs returns a prompt of messages of ten tokens each, named by a letter.
func sentAs(letters string) []replay.Piece {
	var pieces []replay.Piece
	for _, letter := range []byte(letters) {
		pieces = append(pieces, replay.Piece{Sum: conversation.Hash{letter}, Tokens: 10})
	}
	return pieces
}

func TestCacheReadsThePrefixThatWasSentWithinItsTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cache := replay.Cache{TTL: 5 * time.Minute}
	for i, step := range []struct {
		at      time.Duration
		letters string
		want    replay.Use
	}{
		{0, "abc", replay.Use{Write: 30}},
		{1 * time.Minute, "abcd", replay.Use{Read: 30, Write: 10}},
		{2 * time.Minute, "abxd", replay.Use{Read: 20, Write: 20, Bust: true}},
		{3 * time.Minute, "abcde", replay.Use{Read: 40, Write: 10, Bust: true}}, // an older prompt's prefix
		{7 * time.Minute, "abcde", replay.Use{Read: 50}},                        // reading keeps alive
		{11 * time.Minute, "abcdef", replay.Use{Read: 50, Write: 10}},
		{16 * time.Minute, "abcdef", replay.Use{Write: 60}}, // cold, but no bust
		{17 * time.Minute, "ab", replay.Use{Read: 20, Bust: true}},
	} {
		if got := cache.Send(start.Add(step.at), sentAs(step.letters)); got != step.want {
			t.Errorf("step %d, %s: %+v, want %+v", i, step.letters, got, step.want)
		}
	}
}

func TestCacheWithoutATimeForgetsNothing(t *testing.T) {
	t.Parallel()
	var cache replay.Cache
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cache.Send(start, sentAs("ab"))
	if got := cache.Send(start.AddDate(1, 0, 0), sentAs("abc")); got != (replay.Use{Read: 20, Write: 10}) {
		t.Errorf("%+v", got)
	}
}
