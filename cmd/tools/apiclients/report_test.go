package apiclients

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

func TestReportIsATableWithItsNotes(t *testing.T) {
	t.Parallel()
	cases := []Case{{Name: "one"}, {Name: "two"}, {Name: "three"}, {Name: "four"}}
	report := NewReport(cases)
	pen, ink := Client{Name: "pen"}, Client{Name: "ink"}
	report.Add(&Trial{Client: pen, Case: cases[0]}, "1.0")
	report.Add(&Trial{Client: pen, Case: cases[1], Remark: "twice"}, "1.0")
	report.Add(&Trial{Client: pen, Case: cases[2], Skipped: "no nib"}, "1.0")
	report.Add(&Trial{Client: ink, Case: cases[0], Err: errors.New("spilt")}, "2.0")

	want := `| client | version | one | two | three | four |
| --- | --- | --- | --- | --- | --- |
| pen | 1.0 | ok | ok: twice | not applicable | not tried |
| ink | 2.0 | **failed** | not tried | not tried | not tried |

- ink, one: spilt

- pen, not applicable: three (no nib)
`
	if got := report.Table(); got != want {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
	if report.Failed() != 1 {
		t.Errorf("%d failed", report.Failed())
	}
}

func TestTrialIsKeptForAPerson(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "kept")
	trial := Trial{
		Client: Client{Name: "Claude Code"}, Case: Case{Name: "tool turn"}, Outputs: []Output{{Line: "claude -p x", Text: "printed"}},
		Exchanges: []Exchange{{Body: []byte("sent")}}, Received: []providerdouble.Recorded{{Body: []byte("received")}},
	}
	if err := trial.Keep(folder); err != nil {
		t.Fatal(err)
	}

	for name, part := range map[string]string{
		"claude-code-tool-turn.txt": "printed", "claude-code-tool-turn/001.json": "sent", "claude-code-tool-turn/provider-001.json": "received",
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
