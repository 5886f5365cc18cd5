package rehydrator

import (
	"slices"
	"strings"
	"unicode"

	"palimpsest/pipeline/conversation"
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

// leastAlike is the minimum share of common words at which two questions count as the same.
const leastAlike = 0.8

// has reports whether the request already contains a hit: its messages, in the same words, or an
// earlier copy of the question itself.
func (q *question) has(hit []conversation.Message) (bool, error) {
	if q.texts == nil {
		q.texts = map[string]bool{}
		for i := range q.exchange.Conversation.Digests {
			message, err := q.exchange.Conversation.Message(i)
			if err != nil {
				return false, err
			}
			for j := range message.Blocks {
				q.texts[squeezed(message.Blocks[j].Text)] = true
			}
		}
	}
	for i := range hit {
		for j := range hit[i].Blocks {
			text := squeezed(hit[i].Blocks[j].Text)
			if !q.texts[text] && (hit[i].Role != conversation.User || !isAlike(text, squeezed(q.typed))) {
				return false, nil
			}
		}
	}
	return true, nil
}

// squeezed returns the words of a text in lower case.
func squeezed(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
}

// isAlike reports whether two squeezed texts share most of their words.
func isAlike(a, b string) bool {
	first, second := wordsOf(a), wordsOf(b)
	both := 0
	for word := range first {
		if second[word] {
			both++
		}
	}
	return float64(both) >= leastAlike*float64(len(first)+len(second)-both)
}

func wordsOf(squeezed string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.SplitSeq(squeezed, " ") {
		words[word] = true
	}
	return words
}
