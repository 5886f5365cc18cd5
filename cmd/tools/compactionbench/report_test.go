package compactionbench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/cmd/tools/compactionbench"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/reporttest"
)

func TestRunReportsEveryPolicy(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	data := t.TempDir()
	bench := newBench(t)
	if err := os.Mkdir(filepath.Join(data, "transcripts"), 0o750); err != nil {
		t.Fatal(err)
	}
	talk := bench.Generated(4, "anthropic", 60)
	if err := os.WriteFile(filepath.Join(data, "transcripts", "one.anthropic.json"), talk.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := bench.Run(t.Context(), compactionbench.Suite{Data: data, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	text := result.Markdown()
	for _, want := range append(compactionbench.All(), "200 turns", "85 turns", "**ours, warm**", "**ours, idle gaps**", "fits its window", "1 longer than the window",
		"1 below the target", "| one | 64000 |", "first sentences of the same size", "| **together** |", "at an epoch: p50") {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if result.Engine.Bytes < 700<<10 || result.Engine.P50 <= 0 || result.Engine.P99 < result.Engine.P50 || result.Engine.First <= 0 {
		t.Errorf("engine %+v", result.Engine)
	}
	for _, row := range result.Real {
		if row.Policy == compactionbench.Ours && (row.P50 <= 0 || row.P99 < row.P50 || row.Failing() > 0) {
			t.Errorf("%+v", row)
		}
	}
}

func TestReportIsWrittenBetweenItsMarks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.md")
	page := "# Title\n\n<!-- make bench-compaction writes from here -->\nold\n<!-- make bench-compaction writes to here -->\n\nEnd.\n"
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reporttest.Write(file, "bench-compaction", "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got); strings.Contains(text, "old") || !strings.Contains(text, "from here -->\n\nnew\n\n<!--") || !strings.HasSuffix(text, "End.\n") {
		t.Errorf("%s", text)
	}
	if err := os.WriteFile(file, []byte("# Title\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reporttest.Write(file, "bench-compaction", "new"); err == nil {
		t.Error("a page without marks is written to")
	}
}
