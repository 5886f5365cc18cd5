package prompt

import (
	"strings"
	"testing"
)

func TestTitleIsTheFirstLineInAtMostSoManyCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Fix it\nand the rest":                  "Fix it",
		strings.Repeat("😀", maxTitle):           strings.Repeat("😀", maxTitle),
		strings.Repeat("😀", maxTitle+1):         strings.Repeat("😀", maxTitle-1) + "…",
		"a" + strings.Repeat("😀", 2*maxTitle):   "a" + strings.Repeat("😀", maxTitle-2) + "…",
		strings.Repeat("a", maxTitle+1) + "\nb": strings.Repeat("a", maxTitle-1) + "…",
	} {
		if got := shorten(text); got != want {
			t.Errorf("%.20q…: %q, want %q", text, got, want)
		}
	}
}
