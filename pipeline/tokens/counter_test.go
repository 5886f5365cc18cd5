package tokens_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCountsAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	counter, count := newCounter(t), reference(t, "o200k_base")

	for kind, text := range corpus(t) {
		if got, want := counter.Count(text), count(text); got != want {
			t.Errorf("%s: %d tokens, want %d", kind, got, want)
		}
	}
	for _, text := range oddities() {
		if got, want := counter.Count(text), count(text); got != want {
			t.Errorf("%.60q: %d tokens, want %d", text, got, want)
		}
	}
}

func TestMixedTextsCountAsTheReference(t *testing.T) {
	t.Parallel()
	counter, count := newCounter(t), reference(t, "o200k_base")
	fragments := append(shortOddities(), " ", " ", "\n", "\t", "'", "word", " Word", "WORD", "7", "\u0301", "é", "字", "👍", "/", "\r", "ll", "S")

	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 1, 12).Draw(t, "fragments"), "")
		if got, want := counter.Count(text), count(text); got != want {
			t.Fatalf("%q: %d tokens, want %d", text, got, want)
		}
	})
}

func shortOddities() []string {
	return slices.DeleteFunc(oddities(), func(text string) bool { return len(text) > 40 })
}

func FuzzCount(f *testing.F) {
	counter, count := newCounter(f), reference(f, "o200k_base")
	for _, text := range oddities() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return // the reference takes quadratic time
		}
		got := counter.Count(text)
		if utf8.ValidString(text) && got != count(text) {
			t.Errorf("%q: %d tokens, want %d", text, got, count(text))
		}
	})
}

func TestLongRunsAreExact(t *testing.T) {
	t.Parallel()
	counter, count := newCounter(t), reference(t, "o200k_base")

	runs := map[string]string{
		"letters": strings.Repeat("qwertzuiopasdfghjklyxcvbnm", 200), "one letter": strings.Repeat("a", 5000), "ideographs": strings.Repeat("会话越长早先的内容就越需要压缩", 100),
		"capitals": strings.Repeat("ABCDEFGH", 600), "dashes": strings.Repeat("-=", 2500), "spaces": strings.Repeat(" ", 5000), "thai": strings.Repeat("สวัสดีชาวโลก", 120),
	}
	for kind, run := range runs {
		if got, want := counter.Count(run), count(run); got != want {
			t.Errorf("%s: %d tokens, want %d", kind, got, want)
		}
	}
}

// A quadratic count of these would take many minutes.
// S37
func TestRunsOfAnyLengthAreCountedInLinearTime(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)

	for _, unit := range []string{"a", "qwertzuiop", "A", " ", "=", "字", "\u0301", "ª", "ªAAA"} {
		short := strings.Repeat(unit, 60_000/len(unit))
		long := strings.Repeat(unit, 4<<20/len(unit))
		perByte := float64(counter.Count(short)) / float64(len(short))
		if got, want := float64(counter.Count(long)), perByte*float64(len(long)); math.Abs(got-want) > 0.01*want {
			t.Errorf("4 MiB of %q: %.0f tokens, want about %.0f", unit, got, want)
		}
	}
}

func TestConcurrentCountsAgree(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	texts := corpus(t)
	want := map[string]int{}
	for kind, text := range texts {
		want[kind] = newCounter(t).Count(text)
	}

	var workers sync.WaitGroup
	for range 4 {
		for kind, text := range texts {
			workers.Go(func() {
				if got := counter.Count(text); got != want[kind] {
					t.Errorf("%s: %d tokens, want %d", kind, got, want[kind])
				}
			})
		}
	}
	workers.Wait()
}

func TestCountingDoesNotAllocate(t *testing.T) {
	counter := newCounter(t)
	_, english := sourceCode(t)
	text := english[:10_000]
	counter.Count(text)
	if allocations := testing.AllocsPerRun(10, func() { counter.Count(text) }); allocations > 0 {
		t.Errorf("%.0f allocations for a text of short words, want none", allocations)
	}
}

func BenchmarkCount(b *testing.B) {
	counter := newCounter(b)
	for kind, text := range corpus(b) {
		b.Run(kind, func(b *testing.B) {
			counter.Count(text)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				counter.Count(text)
			}
		})
	}
}
