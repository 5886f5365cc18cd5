package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/ledger"
)

func TestOutlineKeepsTheFirstSentenceOfEachStep(t *testing.T) {
	t.Parallel()
	plan := "# Plan: move the parser\n\nThe parser is slow. It reads\nall twice.\n\n## Steps\n\n1. Add `lex.go`. It holds the lexer,\n   e.g. its states.\n" +
		"   ```go\n   // 2. not a step.\n   ```\n2) Call it from parse.go\n   - keep the old one. For now.\n   * delete `old_*.go`!  Then commit.\n\n-5 is no step. True.\n~~~\n- none\n~~~\n• Test it? Yes."
	want := "# Plan: move the parser\nThe parser is slow.\n## Steps\n1. Add `lex.go`.\n2) Call it from parse.go\n   - keep the old one.\n   * delete `old_*.go`!\n-5 is no step.\n• Test it?"
	if got := ledger.Outline(plan); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := ledger.Outline("\n\n```\n"); got != "" {
		t.Errorf("got %q", got)
	}
}

// A plan that is longer than what a ledger keeps of one stays with all of its steps.
func TestLongPlansKeepEveryStep(t *testing.T) {
	t.Parallel()
	var plan strings.Builder
	for i := range 60 {
		fmt.Fprintf(&plan, "%d. Do step %d of the work. %s\n", i+1, i+1, strings.Repeat("It has many details. ", 10))
	}
	text := new(talk).user("Implement the following plan:\n\n"+plan.String()).says("ok").ledger().Text(10_000, words)
	for i := range 60 {
		if !strings.Contains(text, fmt.Sprintf("%d. Do step %d of the work.", i+1, i+1)) {
			t.Fatalf("step %d is missing in\n%s", i+1, text)
		}
	}
}
