package rehydrator

import (
	"slices"
	"strings"

	"palimpsest/pipeline/expression"
)

// quoted finds text in backquotes or quotation marks.
var quoted = expression.New("`([^`\n]{4,120})`" + `|"([^"\n]{8,120})"|“([^”\n]{8,120})”`)

// named matches names: paths and files, symbols, hashes and ids.
var named = expression.New(`(?:[\w.@~-]*/)+[\w.@-]+` + // paths
	`|\b[\w-]+\.[a-z]{1,5}\b` + // files
	`|\b[A-Za-z]\w*(?:_\w+)+\b|\b[a-z]+(?:[A-Z]\w*)+\b|\b[A-Z][a-z0-9]+(?:[A-Z]\w*)+\b` + // symbols
	`|\b[0-9a-f]{7,40}\b`)

const (
	maxNames = 24 // of a text that are looked for
	minName  = 5  // bytes
	minQuote = 16 // bytes: shorter quotations are mostly commands
)

// names returns the names in a text, each once: quotations of several words first.
func names(text string) []string {
	text = withoutLogs(ends(text))
	var found []string
	add := func(name string) {
		name = strings.TrimSpace(strings.TrimRight(name, ".,;:"))
		if len(name) >= minName && len(found) < maxNames && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	for _, match := range quoted.FindAllStringSubmatch(text, maxNames) {
		if phrase := strings.Join(match[1:], ""); len(phrase) >= minQuote && len(strings.Fields(phrase)) > 1 {
			add(phrase)
		}
	}
	for _, name := range named.FindAllString(text, -1) {
		if strings.ContainsAny(name, "/._0123456789") || strings.ToLower(name) != name {
			add(name)
		}
	}
	return found
}

// logged matches lines of a log: with a time of day, or with three members such as session=12.
var logged = expression.New(`(?m)^.*(?:\b\d\d:\d\d:\d\d\b|(?:\b\w+=\S*\s.*){2}\b\w+=).*$`)

// withoutLogs returns a text without lines of a log, because people don't refer to names in them.
func withoutLogs(text string) string { return logged.ReplaceAllString(text, "") }
