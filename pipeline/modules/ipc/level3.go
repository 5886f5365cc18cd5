package ipc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What L3 leaves of a block of turns.
const (
	blockTurns      = 8 // turns in a block, before blocks are made coarser
	blockCharacters = 120
	blockFiles      = 6
	blockTools      = 6
)

// blockLine returns the one line of a block of adjacent turns: what was asked
// first and said last, the files, the tools, the failures.
func blockLine(spans []*span) string {
	first, last := spans[0], spans[len(spans)-1]
	asked, said, more, errors := "", "", 0, 0
	var tools tally
	var changed, read []string
	for _, span := range spans {
		record := span.record
		switch {
		case record.asked != "" && asked != "":
			more++
		case record.asked != "":
			asked = "User: " + shorten(record.asked, blockCharacters)
		}
		if record.said != "" {
			said = record.said
		}
		for _, tool := range record.tools {
			tools.add(tool)
		}
		changed, read = append(changed, record.changed...), append(read, record.read...)
		errors += record.errors
	}
	if more > 0 {
		asked += fmt.Sprintf(" (and %d more)", more)
	}
	if said != "" {
		said = "Assistant: " + shorten(said, blockCharacters)
	}
	failures := ""
	if errors > 0 {
		failures = fmt.Sprintf("errors: %d", errors)
	}
	fields := joinNonEmpty(" | ", asked, said, listed("changed: ", changed), listed("read: ", read), tools.String(), failures)
	return fmt.Sprintf("[%s, %s–%s] %s", turnRange(first.turn, last.turn), archived(first.From), archived(last.To-1), fields)
}

// turnRange names turns as people count them.
func turnRange(first, last int) string {
	if first == last {
		return "turn " + strconv.Itoa(first+1)
	}
	return fmt.Sprintf("turns %d–%d", first+1, last+1)
}

// listed returns the last few different names, newest last.
func listed(title string, names []string) string {
	var kept []string
	seen := map[string]bool{}
	for _, name := range slices.Backward(names) {
		if seen[name] {
			continue
		}
		seen[name] = true
		if len(seen) <= blockFiles {
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	slices.Reverse(kept)
	text := title + strings.Join(kept, ", ")
	if more := len(seen) - len(kept); more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// tally counts names in the order of their first appearance.
type tally struct {
	names  []string
	counts map[string]int
}

func (t *tally) add(name string) {
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	if t.counts[name] == 0 {
		t.names = append(t.names, name)
	}
	t.counts[name]++
}

// String returns the names with their counts; empty for none.
func (t *tally) String() string {
	if len(t.names) == 0 {
		return ""
	}
	text := strings.Builder{}
	text.WriteString("tools:")
	for i, name := range t.names {
		if i == blockTools {
			fmt.Fprintf(&text, " (and %d more)", len(t.names)-blockTools)
			break
		}
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, " %s ×%d", name, t.counts[name])
	}
	return text.String()
}
