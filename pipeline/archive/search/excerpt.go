package search

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

const (
	// gap stands for lines that were left out.
	gap = "[…]"
	// around is how many lines before and after a matching line are kept with it.
	around = 4
	// headShare is the share of a budget that goes to the beginning of a text in
	// which no line matches; its end gets the rest.
	headShare = 0.6
	// mostBytes is the most bytes that a token stands for in what is cut: a text
	// that is longer than its budget even so is cut without being counted.
	mostBytes = 12
	// firstShare is the most of a budget that one of several hits may take before
	// the others have had theirs.
	firstShare = 0.6
	// longestLine is the most bytes of a line that is kept whole.
	longestLine = 2000
)

// Excerpt returns what messages say about a query, verbatim, in at most budget tokens
// by count: whole where they fit, else the documents that match best, whole or cut to
// the lines around what matches; where no line does, to beginning and end. A line
// "[…]" stands for what was left out.
func Excerpt(messages []conversation.Message, query string, budget int, count func(string) int) string {
	return excerpt(messages, Ask(query), budget, count)
}

// Excerpts is Excerpt for several hits, best first, in one budget: each may take most
// of what is left, and what the others do not need goes to the first ones. Hits that
// get nothing have an empty text.
func Excerpts(hits [][]conversation.Message, query string, budget int, count func(string) int) []string {
	question := Ask(query)
	texts, used := make([]string, len(hits)), make([]int, len(hits))
	left := budget
	for i := range hits {
		share := left
		if i < len(hits)-1 {
			share = int(float64(left) * firstShare)
		}
		texts[i] = excerpt(hits[i], question, share, count)
		used[i] = count(texts[i])
		left -= used[i]
	}
	for i := range hits {
		if left <= 0 {
			break
		}
		text := excerpt(hits[i], question, used[i]+left, count)
		if tokens := count(text); tokens > used[i] && tokens <= used[i]+left {
			left -= tokens - used[i]
			texts[i] = text
		}
	}
	return texts
}

func excerpt(messages []conversation.Message, question Question, budget int, count func(string) int) string {
	documents := Documents(0, messages)
	memory := NewMemory(documents)
	matches := memory.Search(question, 0, len(documents))
	var parts []string
	for i := range matches {
		text := matches[i].Document.text()
		cost := budget + 1
		if len(text) <= budget*mostBytes {
			cost = count(text) + 1
		}
		if cost > budget {
			if text = memory.cut(text, question, budget, count); text == "" {
				break
			}
			cost = count(text) + 1
		}
		parts = append(parts, text)
		budget -= cost
	}
	return strings.Join(parts, "\n")
}

// text is a document as it stands in its messages.
func (d *Document) text() string {
	var text strings.Builder
	for i := range d.blocks {
		if i > 0 {
			text.WriteByte('\n')
		}
		switch block := &d.blocks[i]; block.Kind {
		case conversation.ToolCall:
			text.WriteString("[call " + block.Name + "] " + block.Text)
		case conversation.ToolResult:
			text.WriteString("[result]\n" + block.Text)
		case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			text.WriteString(block.Text)
		}
	}
	return text.String()
}

// cut keeps the lines of a text that match best and those around them, in at most
// budget tokens.
func (m *Memory) cut(text string, question Question, budget int, count func(string) int) string {
	lines := strings.Split(text, "\n")
	kept := make([]bool, len(lines))
	left := budget
	keep := func(i int) bool {
		if i < 0 || i >= len(lines) || kept[i] {
			return true
		}
		if len(lines[i]) > longestLine {
			lines[i] = strings.ToValidUTF8(lines[i][:longestLine], "") + gap
		}
		cost := count(lines[i]) + 2 // its end, and its part of a gap
		if cost > left {
			return false
		}
		left -= cost
		kept[i] = true
		return true
	}
	keep(0)
	for _, i := range m.matching(lines, question) {
		if !keep(i) {
			break
		}
		for distance := 1; distance <= around; distance++ {
			keep(i - distance)
			keep(i + distance)
		}
	}
	tail := int(float64(left) * (1 - headShare))
	for i := 0; i < len(lines) && left > tail && keep(i); i++ {
	}
	for i := len(lines) - 1; i >= 0 && keep(i); i-- {
	}
	return joined(lines, kept)
}

// matching returns the lines that hold something of what is asked, best first.
func (m *Memory) matching(lines []string, question Question) []int {
	wanted := map[string]float64{}
	for _, term := range question.Wanted {
		wanted[term.Text] = term.Weight
	}
	type scored struct {
		line  int
		score float64
	}
	var found []scored
	holding := map[string]int{}
	terms := make([]map[string]bool, len(lines))
	for i, line := range lines {
		terms[i] = map[string]bool{}
		eachTerm(line, func(term string) {
			if wanted[term] > 0 && !terms[i][term] {
				terms[i][term] = true
				holding[term]++
			}
		})
	}
	for i := range lines {
		score := 0.0
		for _, term := range question.Wanted {
			if terms[i][term.Text] {
				score += term.Weight * Rarity(len(lines), holding[term.Text])
			}
		}
		if score > 0 {
			found = append(found, scored{i, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	order := make([]int, len(found))
	for i := range found {
		order[i] = found[i].line
	}
	return order
}

// joined returns the kept lines, with a gap where others stood between them.
func joined(lines []string, kept []bool) string {
	var text strings.Builder
	missing := false
	for i, line := range lines {
		if !kept[i] {
			missing = true
			continue
		}
		if missing {
			text.WriteString(gap + "\n")
		}
		missing = false
		text.WriteString(line + "\n")
	}
	if missing && text.Len() > 0 {
		text.WriteString(gap + "\n")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// Snippet returns the lines of messages around what matches a question best, in about
// so many bytes.
func Snippet(messages []conversation.Message, question Question, bytes int) string {
	documents := Documents(0, messages)
	memory := NewMemory(documents)
	matches := memory.Search(question, 0, 1)
	if len(matches) == 0 {
		return ""
	}
	text := memory.cut(matches[0].Document.text(), question, bytes, func(line string) int { return len(line) })
	if text == "" {
		text = strings.ToValidUTF8(matches[0].Document.text()[:min(bytes, len(matches[0].Document.text()))], "")
	}
	return text
}
