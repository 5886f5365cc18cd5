package reporttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportIsWrittenBetweenTheMarks(t *testing.T) {
	t.Parallel()

	beginMark, endMark := marks("bench")
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# Title\n" + beginMark + "\nold\n" + endMark + "\nend\n")
	if err := CanWrite(page, "bench"); err != nil {
		t.Fatal(err)
	}
	if err := Write(page, "bench", "new"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Title\n" + beginMark + "\n\nnew\n\n" + endMark + "\nend\n"; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	write("# Title without marks\n")
	if err := Write(page, "bench", "new"); err == nil {
		t.Error("a page without marks was written")
	}
	for _, file := range []string{page, filepath.Join(t.TempDir(), "none.md")} {
		if err := CanWrite(file, "bench"); err == nil {
			t.Errorf("%s can be written", file)
		}
	}
}

func TestMachineIsDescribed(t *testing.T) {
	t.Parallel()

	if got := Machine(); !strings.Contains(got, " cores, ") || !strings.Contains(got, "go1.") {
		t.Errorf("Machine() = %q", got)
	}
}
