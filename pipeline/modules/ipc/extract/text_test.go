package extract

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// A12: a cut never splits what people see as one character.
func TestACutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ name, text, head string }{
		{"plain", "abcdef", "abc"},
		{"umlauts", "äöüß", "äöü"},
		{"combining accent", "abe\u0301f", "ab"},
		{"family of four", "ab👨\u200d👩\u200d👧f", "ab"},
		{"flag", "ab🇩🇪f", "ab"},
		{"second flag", "🇩🇪🇫🇷f", "🇩🇪"},
		{"skin tone", "ab👍🏽f", "ab"},
		{"variation selector", "ab❤\ufe0ff", "ab"},
		{"syllable", "ab\u1112\u1161\u11abf", "ab"},
		{"line end", "ab\r\nf", "ab"},
		{"short", "ab", "ab"},
		{"broken UTF-8", "ab\xff\xfec", "ab\xff"},
	} {
		if got := c.text[:CutAt(c.text, 3)]; got != c.head {
			t.Errorf("%s: got %q, want %q", c.name, got, c.head)
		}
	}
	for _, c := range []struct{ name, text, tail string }{
		{"plain", "abcdef", "def"}, {"combining accent", "ae\u0301bc", "bc"}, {"emoji", "👨\u200d👩\u200d👧", ""}, {"short", "ab", "ab"},
	} {
		if got := c.text[CutFrom(c.text, 3):]; got != c.tail && !(c.name == "emoji" && got == c.text) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.tail)
		}
	}
}

// A12
func TestAnyCutLeavesValidText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("aä漢字👩\u200d🇩🇪🏽e\u0301\r\n. ")), 0, 60, -1).Draw(r, "text")
		n := rapid.IntRange(0, 70).Draw(r, "characters")
		head, tail := text[:CutAt(text, n)], text[CutFrom(text, n):]
		if !utf8.ValidString(head) || !utf8.ValidString(tail) || utf8.RuneCountInString(head) > n || utf8.RuneCountInString(tail) > n {
			r.Fatalf("head %q, tail %q", head, tail)
		}
		if Joins(text, len(head)) || Joins(text, len(text)-len(tail)) {
			r.Fatalf("%q is split: %q, %q", text, head, tail)
		}
	})
}

func TestTheFirstSentenceStandsForAText(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"Fix the login bug, please. Then deploy.", "Fix the login bug, please."},
		{"Sure. I will look at the handler first. Then at the tests.", "Sure. I will look at the handler first."},
		{"No end", "No end"},
		{"Look at v1.2.3 of file.go now! Yes.", "Look at v1.2.3 of file.go now!"},
		{"A first line\n\nand a second", "A first line and a second"},
		{"A first line that says enough\nand a second", "A first line that says enough"},
		{"これは日本語の文章であり、とても長いものです。次の文。", "これは日本語の文章であり、とても長いものです。"},
		{"<system-reminder>never mind me</system-reminder>  Rename the package everywhere. Ok?", "Rename the package everywhere."},
		{"broken \xff text. x", "broken \xff text. x"},
	} {
		if got, _ := Sentence(c.text, 200); got != c.want {
			t.Errorf("%q: got %q", c.text, got)
		}
	}
	if got, _ := Sentence(strings.Repeat("word ", 500), 50); utf8.RuneCountInString(got) > 51 || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	t.Parallel()

	for number, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 24806: "24,806", 1234567: "1,234,567"} {
		if got := Thousands(number); got != want {
			t.Errorf("%d: got %s", number, got)
		}
	}
}
