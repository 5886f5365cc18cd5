package session

import (
	"testing"

	"palimpsest/pipeline/session"
)

func TestCompactionSaysWhatItKeptAndWhatItLost(t *testing.T) {
	t.Parallel()
	for want, certificate := range map[string]session.Certificate{
		"nothing lost":                        {{What: "orders", All: 2, InPrompt: 2}, {What: "plan"}},
		"nothing lost, 3 available to recall": {{What: "orders", All: 2, InPrompt: 1, Archived: 1}, {What: "decisions", All: 2, Archived: 2}},
		"lost: 1 of 2 orders (#7)":            {{What: "orders", All: 2, InPrompt: 1, Missing: []int{7}}, {What: "decisions", All: 2, Archived: 2}},
		"lost: 2 of 3 plan (#7), 1 of 1 x":    {{What: "plan", All: 3, InPrompt: 1, Missing: []int{7}}, {What: "x", All: 1}},
	} {
		if got := certified(certificate); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	line := session.Kept{What: "orders", All: 4, InPrompt: 1, Archived: 1, Missing: []int{7, 9}}
	if got := keptText(&line); got != "1 of 4 in the prompt, 1 available to recall, 2 missing (#7, #9)" {
		t.Errorf("%q", got)
	}
	if lines := kept(session.Certificate{{What: "plan"}, line}); len(lines) != 1 || lines[0].What != "orders" {
		t.Errorf("%+v", lines)
	}
}
