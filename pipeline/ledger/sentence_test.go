package ledger

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSentencesStayAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                  nil,
		"One. Two!  Three? four":            {"One.", "Two!", "Three?", "four"},
		"Run go test ./... first. Then go.": {"Run go test ./... first.", "Then go."},
		"Use v1.2.3, e.g. from a.b.c. Done": {"Use v1.2.3, e.g. from a.b.c.", "Done"},
		"# Head\n\n- one\n* two\n> three":   {"Head", "one", "two", "three"},
		"1. First thing. 2. Second thing.":  {"1. First thing.", "2. Second thing."},
		"使用制表符。不要提交！好":                      {"使用制表符。", "不要提交！", "好"},
		"no  change   inside.":              {"no  change   inside."},
		"ends in dots...":                   {"ends in dots..."},
	} {
		if got := slices.Collect(sentences(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Every sentence stands in the text word for word, and no word is lost.
func TestSentencesLoseNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-zé 決。.!?-]|\n){0,80}`).Draw(t, "text")
		kept := 0
		for sentence := range sentences(text) {
			if !strings.Contains(text, sentence) || strings.Contains(sentence, "\n") {
				t.Fatalf("%q is not a sentence of %q", sentence, text)
			}
			kept += letters(sentence)
		}
		if kept != letters(text) {
			t.Fatalf("%d of %d letters of %q", kept, letters(text), text)
		}
	})
}

func letters(text string) int {
	count := 0
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r == 'é' || r == '決' {
			count++
		}
	}
	return count
}

// A12: no rune is split.
func TestTextsAreCutBetweenRunes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, size := rapid.String().Draw(t, "text"), rapid.IntRange(4, 40).Draw(t, "size")
		for _, cut := range []string{bounded(text, size), oneLine(text, size)} {
			if len(cut) > size || utf8.ValidString(text) && !utf8.ValidString(cut) {
				t.Fatalf("%q of %d bytes: %q", text, size, cut)
			}
		}
		if len(text) <= size && bounded(text, size) != text {
			t.Fatalf("%q was changed to %q", text, bounded(text, size))
		}
		if strings.ContainsAny(oneLine(text, size), "\n\t\r") {
			t.Fatalf("%q has lines", oneLine(text, size))
		}
	})
}

func TestCuesAreWholeWords(t *testing.T) {
	t.Parallel()
	known := cuesOf("never", "make sure", "decision:", "don't")
	for text, want := range map[string]bool{
		"never do it":              true,
		"do it never":              true,
		"nevertheless":             false,
		"whenever":                 false,
		"now make sure it works":   true,
		"make surely":              false,
		"the decision: we do it":   true,
		"the decision is made":     false,
		"(don't)":                  true,
		"don'ts":                   false,
		"never_mind":               false,
		"決定never":                  true,
		"make, never mind, a sure": true,
		"":                         false,
	} {
		if got := known.in(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
