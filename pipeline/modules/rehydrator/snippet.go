package rehydrator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// The sizes of the snippets for a name.
const (
	snippetTokens = 250 // of one document
	mostSnippets  = 3
	aroundName    = 3   // lines before and after one that holds a name
	fewLines      = 8   // of a result if only its call holds a name
	longestLine   = 300 // bytes of a line
)

// replaced are the arguments with the text that an edit replaced.
var replaced = []string{"old_string", "old_str", "oldText", "oldString", "old_text"} //nolint:gochecknoglobals // never changes

// snippet returns the lines of messages around names, in at most so many tokens. Calls and
// texts without any of the names are left out.
func snippet(messages []conversation.Message, names []string, budget int, count func(string) int) string {
	var lines []string
	for _, group := range groups(messages) {
		var own []string
		for _, block := range group {
			own = append(own, linesOf(block)...)
		}
		if says(own, names) {
			lines = append(lines, own...)
		}
	}
	order := make([]int, 0, len(lines))
	for i, line := range lines {
		if holding(line, names) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(holding(lines[b], names), holding(lines[a], names)) })
	kept := make([]bool, len(lines))
	keep := func(at int) bool {
		if at < 0 || at >= len(lines) || kept[at] {
			return true
		}
		cost := count(shortLine(lines[at], names)) + 2 // and a gap
		if cost > budget {
			return false
		}
		kept[at], budget = true, budget-cost
		return true
	}
	for _, at := range order {
		if !keep(at) {
			break
		}
		after := aroundName
		if isCallLine(lines, at) {
			after = fewLines
		}
		for distance := 1; distance <= after; distance++ {
			if distance <= aroundName {
				keep(at - distance)
			}
			keep(at + distance)
		}
	}
	return joined(lines, kept, names)
}

// says reports whether lines hold a name, and more about it than the beginning of a file.
func says(lines, names []string) bool {
	result := slices.Index(lines, "[result]")
	for i, line := range lines {
		if holding(line, names) > 0 {
			isPath := strings.HasPrefix(line, "file_path: ") || strings.HasPrefix(line, "path: ")
			if !isPath || i > result || len(lines)-result <= 2*fewLines {
				return true
			}
		}
	}
	return false
}

// groups returns the blocks of messages: each call with its result, and each text on its own.
func groups(messages []conversation.Message) [][]conversation.Block {
	var all [][]conversation.Block
	calls := map[string]int{}
	for i := range messages {
		for _, block := range messages[i].Blocks {
			switch block.Kind {
			case conversation.ToolResult:
				if at, isKnown := calls[block.ID]; isKnown {
					all[at] = append(all[at], block)
					continue
				}
			case conversation.ToolCall:
				calls[block.ID] = len(all)
			case conversation.Text:
			case conversation.Thinking, conversation.Media, conversation.Opaque:
				continue
			}
			all = append(all, []conversation.Block{block})
		}
	}
	return all
}

// linesOf returns a block in lines, without reminders and without the replaced text of an edit.
func linesOf(block conversation.Block) []string {
	text := strings.TrimSpace(conversation.WithoutReminders(block.Text))
	switch block.Kind {
	case conversation.ToolCall:
		var arguments map[string]any
		if json.Unmarshal([]byte(text), &arguments) != nil {
			return strings.Split("[call "+block.Name+"] "+text, "\n")
		}
		lines := []string{"[call " + block.Name + "]"}
		for _, name := range slices.Sorted(maps.Keys(arguments)) {
			if !slices.Contains(replaced, name) {
				lines = append(lines, strings.Split(fmt.Sprintf("%s: %v", name, arguments[name]), "\n")...)
			}
		}
		return lines
	case conversation.ToolResult:
		return append([]string{"[result]"}, strings.Split(strings.Trim(conversation.WithoutReminders(block.Text), "\n"), "\n")...)
	case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
	}
	return strings.Split(text, "\n")
}

// isCallLine reports whether a line belongs to a call and not to its result.
func isCallLine(lines []string, at int) bool {
	for ; at >= 0; at-- {
		if strings.HasPrefix(lines[at], "[call ") {
			return true
		}
		if lines[at] == "[result]" {
			return false
		}
	}
	return false
}

// holding counts the names that a line holds.
func holding(line string, names []string) int {
	found := 0
	for _, name := range names {
		if strings.Contains(line, name) {
			found++
		}
	}
	return found
}

// shortLine returns a line, or the part of a long one around the first name that it holds.
func shortLine(line string, names []string) string {
	if len(line) <= longestLine {
		return line
	}
	at := 0
	for _, name := range names {
		if at = strings.Index(line, name); at >= 0 {
			break
		}
	}
	from := max(0, min(at-longestLine/2, len(line)-longestLine))
	return strings.ToValidUTF8(line[from:from+longestLine], "") + gap
}

// gap marks an omission.
const gap = "[…]"

// joined returns the kept lines, with a gap at each omission.
func joined(lines []string, kept []bool, names []string) string {
	var text []string
	missing := false
	for i, line := range lines {
		if !kept[i] {
			missing = true
			continue
		}
		if missing && len(text) > 0 {
			text = append(text, gap)
		}
		text, missing = append(text, shortLine(line, names)), false
	}
	return strings.Join(text, "\n")
}
