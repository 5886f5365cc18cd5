package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachCommandHasAManualPage(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "man")
	if said, err := saidBy(t, "man", folder); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for file, parts := range map[string][]string{
		"palimpsest.1":               {`.TH "PALIMPSEST" 1 "" "palimpsest `, "palimpsest\\-connect(1)", ".SH SEE ALSO"},
		"palimpsest-connect.1":       {".SH NAME\npalimpsest\\-connect \\- Set a client up", ".SH DESCRIPTION\nShows what would change", ".TP\n\\-\\-dry\\-run\nshow the changes", "OPTIONS OF EVERY COMMAND"},
		"palimpsest-sessions-list.1": {".TP\n\\-L, \\-\\-limit int\nhow many", "palimpsest\\-sessions(1)"},
	} {
		page, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s lacks %q:\n%s", file, part, page)
			}
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		return // what reads the pages is not on this machine
	}
	all, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), groff, append([]string{"-man", "-ww", "-z"}, all...)...).CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("groff: %v\n%s", err, said)
	}
}
