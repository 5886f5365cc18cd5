package summary

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

const (
	typedWeight = 4  // typed text counts as much as so many turns
	mostTurns   = 6  // more turns don't count
	leastWeight = 2  // names mentioned only once in passing are dropped
	mostWanted  = 60 // identifiers to restore
	longestName = 200
)

// identifiers collects names that are useful only if exact: paths, links, ids, versions, names in
// backticks.
type identifiers struct {
	pattern *regexp.Regexp
	found   map[string]*mention
}

// mention is how often and where an identifier was mentioned.
type mention struct {
	weight int
	last   int // turn
}

func newIdentifiers() *identifiers {
	return &identifiers{
		pattern: regexp.MustCompile("https?://[^\\s\"'<>()\\[\\]`]+" + // links
			"|`[^`\\n]{2,80}`" + // names in backticks
			`|(?:~|\.{0,2})(?:/[\w.@+-]+){2,}|[\w.@+-]+(?:/[\w.@+-]+)+\.\w{1,8}\b` + // paths
			`|\b[\w-]+\.(?:go|py|ts|tsx|js|jsx|rs|java|rb|c|h|cc|cpp|cs|php|sh|sql|json|ya?ml|toml|md|html|css|templ|proto|txt|lock|mod)\b` +
			`|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b` +
			`|\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{5,38}\b` + // commits
			`|\b[A-Z][A-Z0-9]+-\d+\b|#\d{2,7}\b` + // issues
			`|\bv?\d+\.\d+(?:\.\d+)+\b`), // versions
		found: map[string]*mention{},
	}
}

// addTurn collects from typed text, answers and calls of a turn. A name in a tool's result counts
// only if someone uses it.
func (s *identifiers) addTurn(turn int, messages []conversation.Message) {
	seen := map[string]bool{}
	for i := range messages {
		message := &messages[i]
		for j := range message.Blocks {
			block := &message.Blocks[j]
			switch block.Kind {
			case conversation.Text:
				weight := 1
				if message.Role == conversation.User {
					if !conversation.IsTyped(block.Text) {
						continue
					}
					weight = typedWeight
				}
				s.add(turn, Plain(block.Text), weight, seen)
			case conversation.ToolCall:
				s.add(turn, shortened(block.Text, argumentCharacters*4), 1, seen)
			case conversation.ToolResult, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
}

// addOpenError ranks an open error's text before all other names.
func (s *identifiers) addOpenError(text string) {
	if text = oneLine(text); text != "" && len(text) <= longestName {
		s.found[text] = &mention{weight: typedWeight + mostTurns}
	}
}

func (s *identifiers) add(turn int, text string, weight int, seen map[string]bool) {
	for _, name := range s.pattern.FindAllString(text, -1) {
		name = strings.TrimPrefix(strings.TrimRight(strings.Trim(name, "`"), ".,;:"), "./")
		if len(name) < 3 || len(name) > longestName || strings.ContainsAny(name, "\n") || seen[name] && weight == 1 {
			continue
		}
		known := s.found[name]
		if known == nil {
			known = &mention{}
			s.found[name] = known
		}
		if !seen[name] || weight > 1 {
			known.weight = min(known.weight+weight, typedWeight+mostTurns-1)
		}
		known.last, seen[name] = turn, true
	}
}

// ranked returns the wanted identifiers, the most wanted first.
func (s *identifiers) ranked() []string {
	names := slices.SortedFunc(maps.Keys(s.found), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.found[b].weight, s.found[a].weight), cmp.Compare(s.found[b].last, s.found[a].last), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(names, func(name string) bool { return s.found[name].weight < leastWeight })
}

// restore restores facts that the model's text lost: directives verbatim, files, and the most
// wanted identifiers that it lacks.
func (f *facts) restore(d *document) {
	lost := make([]string, 0, len(f.directives))
	text := flat(d.String())
	for _, directive := range slices.Backward(f.directives) { // oldest first, as they came
		if !strings.Contains(text, flat(directive)) && !slices.Contains(lost, directive) {
			lost = append(lost, directive)
		}
	}
	d.items[constraints] = append(d.items[constraints], lost...)
	d.modified, d.read = f.modified, f.read
	d.identifiers = nil
	text = d.String()
	for _, name := range f.identifiers {
		if len(d.identifiers) == mostWanted {
			break
		}
		if !strings.Contains(text, name) {
			d.identifiers = append(d.identifiers, name)
		}
	}
}

// keeps reports whether a summary holds the newest directives.
func (f *facts) keeps(text string) bool {
	const newest = 10
	text = flat(text)
	for _, directive := range f.directives[:min(newest, len(f.directives))] {
		if !strings.Contains(text, flat(directive)) {
			return false
		}
	}
	return true
}

// flat returns a text in one line, so that line ends make no difference.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
