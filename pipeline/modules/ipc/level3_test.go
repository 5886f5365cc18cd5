package ipc

import (
	"strings"
	"testing"

	"palimpsest/pipeline/modules/ipc/extract"
)

// L3 never grows with the number of turns in a block.
func TestAnOutlineAtL3IsBounded(t *testing.T) {
	t.Parallel()

	var spans []*span
	for i := range 500 {
		spans = append(spans, &span{From: 2 * i, To: 2*i + 2, turn: i, record: &record{
			names:   []name{{text: "Name" + extract.Thousands(i), turns: 2}},
			changed: []string{"changed" + extract.Thousands(i)}, read: []string{"read" + extract.Thousands(i)},
			results: []result{newResult("Bash", "make "+extract.Thousands(i), "error: undefined: Thing"+extract.Thousands(i), true), newResult("Bash", "go test", "ok parser/"+extract.Thousands(i)+" 0.1s", false)},
		}})
	}
	line := outlineOf(spans, "")
	if len(line) > 1200 || strings.Count(line, "\n") > 5 {
		t.Errorf("%d bytes: %s", len(line), line)
	}
	for _, text := range []string{"[turns 1–500, #0–#999]", "changed499", "(and 496 more)", "Checks: Bash(go test) → ok\n", "Failed: Bash(make 497) → error: undefined: Thing497; Bash(make 498)", "Thing499\nNames: Name0, Name1,"} {
		if !strings.Contains(line, text) {
			t.Errorf("%q is not in %s", text, line)
		}
	}
}
