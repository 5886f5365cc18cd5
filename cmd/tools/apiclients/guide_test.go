package apiclients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGuideKeepsTheSnippetsOfEachLanguage(t *testing.T) {
	t.Parallel()
	guide := ReadGuide("# Clients\n\n```sh\nbefore any section\n```\n\n## One\n\n```sh\nfirst\nlines\n```\n\n```sh\nsecond\n```\n\n### Below\n\n```js\nthird\n```\n\n## Two\n\ntext\n")

	if got := guide["One"]["sh"]; !slices.Equal(got, []string{"first\nlines", "second"}) {
		t.Errorf("sh of One: %q", got)
	}
	if got := guide["Below"]["js"]; !slices.Equal(got, []string{"third"}) {
		t.Errorf("js of Below: %q", got)
	}
	if got := guide["Two"]["sh"]; got != nil {
		t.Errorf("sh of Two: %q", got)
	}
}

func TestSnippetNamesTheSessionsProxy(t *testing.T) {
	t.Parallel()
	s := &session{url: "http://127.0.0.1:4711", guide: Guide{"One": {"sh": {"first " + localAddress, "curl " + localAddress + "/v1"}, "js": {"elsewhere"}}}}

	if got, err := s.snippet("One", "sh", "curl"); err != nil || got != "curl http://127.0.0.1:4711/v1" {
		t.Errorf("snippet %q, %v", got, err)
	}
	if _, err := s.snippet("One", "js"); err == nil || !strings.Contains(err.Error(), "does not name") {
		t.Errorf("snippet without the address: error %v", err)
	}
	if _, err := s.snippet("One", "toml"); err == nil || !strings.Contains(err.Error(), "no toml snippet for One") {
		t.Errorf("snippet that is missing: error %v", err)
	}
}

// guideOfTheDocs reads the pages of the docs.
func guideOfTheDocs(t *testing.T) Guide {
	t.Helper()
	var pages []string
	for _, page := range GuidePages() {
		text, err := os.ReadFile(filepath.Join("../../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(text))
	}

	return ReadGuide(pages...)
}

func TestDocsHaveTheSnippetThatEachClientIsSetUpWith(t *testing.T) {
	t.Parallel()
	guide := guideOfTheDocs(t)

	for _, client := range Clients() {
		s, err := newSession(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.install, s.url, s.key, s.guide = t.TempDir(), "http://127.0.0.1:4711", "plm_test", guide
		for _, s.window = range []int{0, client.smallWindow} {
			if err := client.prepare(s); err != nil {
				t.Errorf("%s: %v", client.Name, err)
			}
			for _, again := range []bool{false, true} {
				said, err := client.say(s, "good morning", again)
				if err != nil || said.program == "" || !strings.Contains(strings.Join(said.arguments, " "), "good morning") {
					t.Errorf("%s: says %q %q: %v", client.Name, said.program, said.arguments, err)
				}
			}
		}
	}
}
