package pipelinetest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Capture is a request as a real client sent it.
type Capture struct {
	Path   string          `json:"path"` // without the query
	Header [][2]string     `json:"headers"`
	Body   json.RawMessage `json:"body"`
}

// SharedData returns a path of the real requests beside the repository, from a
// package two folders below its root; without them the test is skipped.
func SharedData(t *testing.T, parts ...string) string {
	t.Helper()
	folder := filepath.Join(append([]string{"..", "..", "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(folder); err != nil {
		t.Skip("no ../shared/data beside the repository: real requests are not read")
	}
	return folder
}

// Captures reads the requests of a case, in order, those without a body left out.
// Without ../shared the test is skipped.
func Captures(t *testing.T, name string) []Capture {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(SharedData(t, "clients"), filepath.FromSlash(name), "*-POST-*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures of %s: %v", name, err)
	}
	slices.Sort(files)
	captures := make([]Capture, len(files))
	for i, file := range files {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of the recorded requests
		if err != nil {
			t.Fatal(err)
		}
		if err = json.Unmarshal(raw, &captures[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		captures[i].Path, _, _ = strings.Cut(captures[i].Path, "?")
	}
	return captures
}

// HeaderWithout returns the request's headers but for those whose names, in small
// letters, begin with one of the prefixes.
func (c Capture) HeaderWithout(prefixes ...string) http.Header {
	header := http.Header{}
	for _, pair := range c.Header {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(strings.ToLower(pair[0]), prefix) }) {
			header.Add(pair[0], pair[1])
		}
	}
	return header
}
