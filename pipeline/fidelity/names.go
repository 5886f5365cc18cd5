// Package fidelity measures how much of a session a shortened prompt still contains: how many of
// the identifiers that later turns use are in it. The benchmarks and the preview of settings use
// it.
package fidelity

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
)

// Names are the identifiers of a session's messages, which are slow to find: paths, URLs, symbols,
// names of errors, ids, and numbers of three digits or more.
type Names struct {
	Messages []conversation.Message
	Written  [][]string // of each message, written by a person or the assistant
	All      [][]string // and returned by tools as well

	first map[string]int // the first message with an identifier; nil until computed
}

// NamesOf finds the identifiers of messages.
func NamesOf(messages []conversation.Message) *Names {
	names := &Names{Messages: messages}
	for i := range messages {
		own := identifiers(Written(&messages[i]))
		names.Written = append(names.Written, own)
		names.All = append(names.All, slices.Concat(own, identifiers(Returned(&messages[i]))))
	}
	return names
}

// TakenUp returns the identifiers that messages in [from, to) write and an earlier message had,
// each once.
func (n *Names) TakenUp(from, to int) []string {
	if n.first == nil {
		n.first = map[string]int{}
		for i, names := range n.All {
			for _, name := range names {
				if _, known := n.first[name]; !known {
					n.first[name] = i
				}
			}
		}
	}
	var taken []string
	for _, names := range n.Written[from:to] {
		for _, name := range names {
			if n.first[name] < from && !slices.Contains(taken, name) {
				taken = append(taken, name)
			}
		}
	}
	return taken
}

// Newest returns the newest message before one that has an identifier, or -1.
func (n *Names) Newest(name string, before int) int {
	for i := before - 1; i >= 0; i-- {
		if slices.Contains(n.All[i], name) {
			return i
		}
	}
	return -1
}

// Held returns how many identifiers messages in [from, to) reuse from earlier ones, and how many
// of these a prompt has.
func (n *Names) Held(from, to int, has func(name string) bool) (held, of int) {
	taken := n.TakenUp(from, to)
	for _, name := range taken {
		if has(name) {
			held++
		}
	}
	return held, len(taken)
}

// Written returns the text that a person or the assistant wrote: texts and the arguments of calls.
func Written(message *conversation.Message) string {
	var texts []string
	for i := range message.Blocks {
		switch block := &message.Blocks[i]; block.Kind {
		case conversation.Text:
			if message.Role == conversation.Assistant || message.Role == conversation.User && conversation.IsTyped(block.Text) {
				texts = append(texts, conversation.WithoutReminders(block.Text))
			}
		case conversation.ToolCall:
			texts = append(texts, block.Name+" "+unescape(block.Text))
		case conversation.ToolResult, conversation.Thinking, conversation.Media, conversation.Opaque:
		}
	}
	return strings.Join(texts, "\n")
}

// unescape decodes the most common escapes of JSON.
func unescape(text string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(text)
}

// Returned returns the text of tool results.
func Returned(message *conversation.Message) string {
	var texts []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.ToolResult {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// identifier matches names of things.
var identifier = expression.New(`https?://[^\s"'<>()\[\]]+` + // URLs
	`|[\w.@~-]*(?:/[\w.@-]+)+` + // paths
	`|\b[\w-]+\.(?:go|ts|tsx|js|jsx|mjs|py|rb|rs|java|kt|c|h|cc|cpp|cs|php|sh|sql|md|txt|json|ya?ml|toml|xml|html|css|lock|cfg|ini|env)\b` +
	`|\b[A-Za-z]\w*(?:_\w+)+\b|\b[a-z]+(?:[A-Z]\w*)+\b|\b[A-Z][a-z0-9]+(?:[A-Z]\w*)+\b` + // symbols and names of errors
	`|\bE[A-Z]{3,}\b|\b[A-Z]{2,}-?\d{2,}\b` + // codes
	`|\b[0-9a-f]{7,40}\b|\b\d{3,}\b`) // ids and numbers

// leastHexadecimal is how many hexadecimal digits make an id.
const leastHexadecimal = 7

// identifiers returns the identifiers of a text. Each field is searched separately, because no
// identifier contains space and most fields are plain words, which need no search.
func identifiers(text string) []string {
	var kept []string
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\t\n\f\r ", r) }) {
		if !mayName(field) {
			continue
		}
		for _, one := range identifier.FindAllString(field, -1) {
			if one = strings.TrimRight(one, ".,;:-/"); len(one) >= 3 {
				kept = append(kept, one)
			}
		}
	}
	return kept
}

// mayName reports whether a field can hold an identifier: one has a sign, a digit or a capital
// after its first letter, or consists of hexadecimal digits.
func mayName(field string) bool {
	hexadecimal := 0
	for i := range len(field) {
		c := field[i]
		switch {
		case c == '/' || c == '.' || c == '_' || c >= '0' && c <= '9' || i > 0 && c >= 'A' && c <= 'Z':
			return true
		case c >= 'a' && c <= 'f':
			hexadecimal++
		default:
			hexadecimal = 0
		}
		if hexadecimal == leastHexadecimal {
			return true
		}
	}
	return false
}
