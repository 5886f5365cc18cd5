package ipc_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
)

// The worked example and the figures of docs/compaction.md and doc.go are those of the code.
func TestDocsHaveTheFiguresOfTheCode(t *testing.T) {
	t.Parallel()
	page, code := docs(t, "../../../docs/compaction.md"), docs(t, "doc.go")
	want := func(text, part string) {
		t.Helper()
		if !strings.Contains(text, strings.Join(strings.Fields(part), " ")) {
			t.Errorf("the docs lack %q", part)
		}
	}
	err := workThrough(func(turns int, report pipeline.Report) {
		if report.Compression != pipeline.Epoch {
			return
		}
		levels := report.Levels
		want(page, fmt.Sprintf("| %d | %s | %s | %d | %d | %d | %d |", turns, ipc.Thousands(report.Before), ipc.Thousands(report.After), levels[0], levels[1], levels[2], levels[3]))
		want(code, fmt.Sprintf("request %d │", turns))
	})
	if err != nil {
		t.Fatal(err)
	}
	const window, answer, fixed = 200_000, 8_192, 25_000
	config := ipc.DefaultConfig()
	limit := window - answer
	goal := int(config.Goal(float64(limit), fixed, 0)) - fixed
	want(page, fmt.Sprintf("the limit is %s, and the defaults act above %s tokens", ipc.Thousands(limit), ipc.Thousands(config.Target(limit))))
	want(page, fmt.Sprintf("%s can change, and the goal is 25,000 + %s", ipc.Thousands(limit-fixed), ipc.Thousands(goal)))
	for _, claim := range ipc.Claims() {
		want(page, claim)
	}
}

// docs returns a file's text with single spaces and without comment marks.
func docs(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(string(text), "//", " ")), " ")
}
