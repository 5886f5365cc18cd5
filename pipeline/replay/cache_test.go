package replay_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/sessiontest"
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

// What a cache takes in is reported and priced by its kind, and the lane learns from that
// for how long it lives.
func TestUsageSaysForHowLongTheProviderCaches(t *testing.T) {
	t.Parallel()
	generated := sessiontest.Generate(3, sessiontest.Options{Turns: 12, TargetTokens: 9_000})
	model := tokens.Model{Name: "claude-sonnet-4-5", Window: 200_000, TokensPerO200k: 1.2, Price: tokens.Price{Input: 10, CacheRead: 1, CacheWrite: 12, CacheWrite1h: 20}}
	for name, one := range map[string]struct {
		ttl       time.Duration
		automatic bool
		lives     time.Duration
		written   float64 // price of a token that is new to the cache
	}{
		"five minutes": {ttl: session.ShortTTL, lives: session.ShortTTL, written: 12},
		"an hour":      {ttl: session.LongTTL, lives: session.LongTTL, written: 20},
		"automatic":    {ttl: 10 * time.Minute, automatic: true, lives: session.ShortTTL, written: 10},
	} {
		run, err := replay.New(replay.Config{
			Format: conversation.Anthropic, Pipeline: modules.Catalog().Default(), TTL: one.ttl, Automatic: one.automatic, Models: []tokens.Model{model},
		})
		if err != nil {
			t.Fatal(err)
		}
		var last replay.Step
		_, err = run.Run(t.Context(), unmarked(t, generated.Body(generated.Steps()-1)), func(step replay.Step) error {
			if want := int64(math.Round(float64(step.Sent.Use.Read) + one.written*float64(step.Sent.Use.Write))); step.CostMicroUSD != want || step.DirectMicroUSD != want {
				t.Errorf("%s, request %d costs %d and %d, want %d", name, step.Number, step.CostMicroUSD, step.DirectMicroUSD, want)
			}
			last = step
			return nil
		})
		if err != nil || last.Sent.Lane == nil || last.Number < 5 {
			t.Fatalf("%s: %+v, %v", name, last, err)
		}
		if heat := last.Sent.Lane.Heat(); heat.TTL != one.lives {
			t.Errorf("%s: the lane's cache is taken to live for %s", name, heat.TTL)
		}
	}
}

// unmarked returns a body without cache markers, as recorded sessions are: the usage alone
// says for how long the provider caches.
func unmarked(t *testing.T, body []byte) []byte {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			delete(value, "cache_control")
			for _, member := range value {
				strip(member)
			}
		case []any:
			for _, element := range value {
				strip(element)
			}
		}
	}
	strip(value)
	stripped, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return stripped
}
