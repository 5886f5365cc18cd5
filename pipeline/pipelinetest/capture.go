package pipelinetest

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/sharedtest"
)

// Capture is a recorded request of a real client.
type Capture struct {
	Path   string          `json:"path"` // without the query
	Header [][2]string     `json:"headers"`
	Body   json.RawMessage `json:"body"`
}

// Captures reads the requests of a case, in order, except those without a body.
func Captures(t *testing.T, name string) []Capture {
	t.Helper()
	files := sharedtest.Files(t, "data/clients/"+name+"/*-POST-*.json")
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

// HeaderWithout returns the request's headers except those whose lowercase names begin with one of the
// prefixes.
func (c Capture) HeaderWithout(prefixes ...string) http.Header {
	header := http.Header{}
	for _, pair := range c.Header {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(strings.ToLower(pair[0]), prefix) }) {
			header.Add(pair[0], pair[1])
		}
	}
	return header
}
