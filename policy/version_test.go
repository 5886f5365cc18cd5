package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// CHANGELOG.md says which version is the newest; what people read and copy names the same one.
func TestFilesNameTheNewestVersion(t *testing.T) {
	t.Parallel()

	root := ".."
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+\S*)`).FindSubmatch(changes)
	if newest == nil {
		t.Fatal("CHANGELOG.md has no heading such as ## 1.0.0")
	}
	var files []string
	for _, pattern := range []string{"*.md", "*.yml", "docs/*.md", "deploy/*/*.yaml", ".github/*/*.yml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	named, count := regexp.MustCompile(`palimpsest[_:@-]v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]*[A-Za-z][0-9A-Za-z.]*)?)`), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllSubmatch(text, -1) {
			if count++; string(match[1]) != string(newest[1]) {
				t.Errorf("%s names %s: the newest version in CHANGELOG.md is %s", file, match[0], newest[1])
			}
		}
	}
	if count == 0 {
		t.Error("no file names a version")
	}
}
