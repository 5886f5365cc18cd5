package policy_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	classAttribute  = regexp.MustCompile(`\bclass="([^"]*)"`)
	classExpression = regexp.MustCompile(`\bclass=\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}`)
	compared        = regexp.MustCompile(`[=!]= "[^"]*"`)         // what a class depends on
	literal         = regexp.MustCompile(`"([^"]*)"(\s*\+)?`)     // with a plus it is the beginning of a class
	styled          = regexp.MustCompile(`\.(-?[A-Za-z_][\w-]*)`) // in a style sheet or a script
)

// classes returns the classes of elements that a template writes out.
func classes(template string) []string {
	var found []string
	for _, match := range classAttribute.FindAllStringSubmatch(template, -1) {
		found = append(found, strings.Fields(match[1])...)
	}
	for _, match := range classExpression.FindAllStringSubmatch(template, -1) {
		for _, text := range literal.FindAllStringSubmatch(compared.ReplaceAllString(match[1], ""), -1) {
			if text[2] == "" {
				found = append(found, strings.Fields(text[1])...)
			}
		}
	}
	return found
}

// A class that was renamed on one side alone leaves an element without its style, which no other test sees.
func TestEveryClassHasAStyle(t *testing.T) {
	t.Parallel()
	known := []string{}
	for _, file := range glob(t, "static/css/*.css", "static/js/*.js") {
		for _, match := range styled.FindAllStringSubmatch(readFile(t, file), -1) {
			known = append(known, match[1])
		}
	}
	seen := 0
	for _, file := range glob(t, "web/*/*.templ") {
		for _, class := range classes(readFile(t, file)) {
			seen++
			if !slices.Contains(known, class) {
				t.Errorf("%s: no style sheet or script knows the class %q", file, class)
			}
		}
	}
	if seen < 500 {
		t.Errorf("only %d classes were found", seen)
	}
}

func TestClassesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`<p class="error small">`:                                    "error small",
		`<p class={ "tag", templ.KV("ok", a.Status == "paid") }>`:    "tag ok",
		`<p class={ "lv", "l" + strconv.Itoa(level) }>`:              "lv",
		`<p class={ templ.Classes(map[string]bool{"is-on": true}) }`: "is-on",
	} {
		if found := strings.Join(classes(text), " "); found != want {
			t.Errorf("%s: found %q, want %q", text, found, want)
		}
	}
}

// glob returns the paths of the files that match patterns, each of which matches one at least.
func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var found []string
	for _, pattern := range patterns {
		paths, err := fs.Glob(repository, pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		found = append(found, paths...)
	}
	return found
}
