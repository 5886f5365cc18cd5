package ipc_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"palimpsest/pipeline/modules/ipc"
)

// The hashes of the rendered forms of testdata are stored together with the RenderVersion that made them. Another form under
// the same version would give replicas of two versions different bytes for the same turns.
func TestRenderedFormHasAVersionOfItsOwn(t *testing.T) {
	t.Parallel()

	const stored = "testdata/rendered.txt"
	text, err := os.ReadFile(stored)
	if err != nil && !*update {
		t.Fatal(err)
	}
	version := fmt.Sprintf("version %d", ipc.RenderVersion)
	before, lines, _ := strings.Cut(string(text), "\n")
	earlier := map[string]string{}
	for line := range strings.Lines(lines) {
		hash, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		earlier[file] = hash
	}
	now := renderedForms(t)
	for file, hash := range now {
		switch known := earlier[file]; {
		case before != version && !*update:
			t.Fatalf("%s is of %q, the code of %q: run go test ./pipeline/modules/ipc -update", stored, before, version)
		case known == "" && !*update:
			t.Errorf("%s lacks %s: run go test ./pipeline/modules/ipc -update", stored, file)
		case before == version && known != "" && known != hash:
			t.Errorf("%s is rendered in another form: raise RenderVersion, then run go test ./pipeline/modules/ipc -update", file)
		}
	}
	if !*update || t.Failed() {
		return
	}
	var out strings.Builder
	fmt.Fprintln(&out, version)
	for _, file := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintln(&out, now[file], file)
	}
	if err := os.WriteFile(stored, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// renderedForms returns the hash of each case's result, by its file.
func renderedForms(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range archive.Files {
			if section.Name == "out" {
				hashes[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(section.Data))[:16]
			}
		}
	}
	return hashes
}
