package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

const (
	// gap marks omitted lines.
	gap = "[…]"
	// around is how many lines before and after a matching line are kept with it.
	around = 4
	// headShare is the beginning's share of the budget for a text without a matching line. The end gets the
	// rest.
	headShare = 0.6
	// mostBytes is a size that a token hardly ever exceeds, in bytes. A text that exceeds its budget even at
	// this rate is cut by lines without being counted. The cut keeps all lines if they fit after all.
	mostBytes = 6
	// firstShare is the largest share of a budget for one of several hits before the others have had theirs.
	firstShare = 0.6
	// longestLine is the maximum size of a line that is kept whole, in bytes.
	longestLine = 2000
)

// Excerpts returns the parts of the hits' messages that answer a query, verbatim, in at most budget tokens by
// count. Hits come best first. A hit is returned whole if it fits. Otherwise it is reduced to the documents
// that match best, whole or cut to the lines around matches, or without a matching line to beginning and end.
// A line "[…]" marks an omission. Each hit may take most of the remaining budget, and the first hits get the
// budget that the others don't need. A hit without a share has an empty text.
func Excerpts(hits [][]conversation.Message, query string, budget int, count func(string) int) []string {
	question := Ask(query)
	texts, used, parts := make([]string, len(hits)), make([]int, len(hits)), make([][]piece, len(hits))
	left := budget
	for i := range hits {
		share := left
		if i < len(hits)-1 {
			share = int(float64(left) * firstShare)
		}
		parts[i] = pieces(hits[i], question)
		texts[i], used[i] = excerpt(parts[i], question, share, count)
		left -= used[i]
	}
	for i := range hits {
		if left <= 0 || whole(parts[i], texts[i]) {
			continue
		}
		var tokens int
		texts[i], tokens = excerpt(parts[i], question, used[i]+left, count)
		left -= tokens - used[i]
	}
	return texts
}

// piece is the text of a document and its cost in tokens once known.
type piece struct {
	text string
	cost int // 0 if not counted yet
}

// pieces returns the texts of the messages' documents, the best matches for the question first.
func pieces(messages []conversation.Message, question Question) []piece {
	documents := Documents(0, messages)
	texts := make([]piece, len(documents))
	for i, place := range order(documents, question) {
		texts[i].text = documents[place].text()
	}
	return texts
}

// order returns the places of documents, the best matches for the question first.
func order(documents []Document, question Question) []int {
	places, scores := make([]int, len(documents)), make([]float64, len(documents))
	for i := range places {
		places[i] = i
	}
	if len(documents) < 2 {
		return places
	}
	matches := NewMemory(beginnings(documents)).Search(question, 0, len(documents))
	for i := range matches {
		for j := range documents {
			if documents[j].From == matches[i].Document.From && documents[j].Part == matches[i].Document.Part {
				scores[j] = matches[i].Rank
			}
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return places
}

// orderBytes is how much of each text is read to order the documents of one hit.
const orderBytes = 4 << 10

// beginnings returns documents shortened to the beginnings of their texts.
func beginnings(documents []Document) []Document {
	short := slices.Clone(documents)
	for i := range short {
		short[i].fields = slices.Clone(short[i].fields)
		for j := range short[i].fields {
			if text := &short[i].fields[j].text; len(*text) > orderBytes {
				*text = strings.ToValidUTF8((*text)[:orderBytes], "")
			}
		}
	}
	return short
}

// excerpt joins pieces within a budget, the last of them cut, and returns their tokens.
func excerpt(parts []piece, question Question, budget int, count func(string) int) (text string, tokens int) {
	var texts []string
	for i := range parts {
		part := &parts[i]
		if part.cost == 0 && len(part.text) <= (budget-tokens)*mostBytes {
			part.cost = count(part.text) + 1 // with the separator before the next
		}
		if part.cost > 0 && part.cost <= budget-tokens {
			texts = append(texts, part.text)
			tokens += part.cost
			continue
		}
		if some := cut(part.text, question, budget-tokens-1, count); some != "" {
			texts = append(texts, some)
			tokens += count(some) + 1
		}
		break
	}
	return strings.Join(texts, "\n"), tokens
}

// whole reports whether an excerpt contains all pieces whole.
func whole(parts []piece, text string) bool {
	length := len(parts) - 1
	for i := range parts {
		length += len(parts[i].text)
	}
	return len(text) >= length
}

// text returns the document's text from its messages.
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

// cut keeps the lines of a text that match best and those around them, in at most budget tokens.
func cut(text string, question Question, budget int, count func(string) int) string {
	lines := strings.Split(text, "\n")
	kept := make([]bool, len(lines))
	gapCost := count(gap + "\n")
	left := budget - gapCost
	keep := func(i int) bool {
		if i < 0 || i >= len(lines) || kept[i] {
			return true
		}
		if len(lines[i]) > longestLine {
			lines[i] = strings.ToValidUTF8(lines[i][:longestLine], "") + gap
		}
		cost := count(lines[i] + "\n")
		if (i == 0 || !kept[i-1]) && (i == len(lines)-1 || !kept[i+1]) {
			cost += gapCost // it has a gap of its own
		}
		if cost > left {
			return false
		}
		left -= cost
		kept[i] = true
		return true
	}
	keep(0)
	for _, i := range matching(lines, question) {
		if !keep(i) {
			break
		}
		for distance := 1; distance <= around; distance++ {
			keep(i - distance)
			keep(i + distance)
		}
	}
	tail := int(float64(left) * (1 - headShare))
	for i := range lines {
		if left <= tail || !keep(i) {
			break
		}
	}
	for i := range lines {
		if !keep(len(lines) - 1 - i) {
			break
		}
	}
	return joined(lines, kept)
}

// matching returns the lines that match the question, best first: those with a phrase of it before the others.
func matching(lines []string, question Question) []int {
	places := map[string]int{}
	for i, term := range question.Wanted {
		places[term.Text] = i
	}
	type scored struct {
		line   int
		score  float64
		quoted bool
	}
	var found []scored
	holding := make([]int, len(question.Wanted))
	terms := make([]uint64, len(lines)) // a bit for each wanted term; MaxWanted fits
	for i, line := range lines {
		eachTerm(line, func(term string) {
			place, wanted := places[term]
			if wanted && terms[i]&(1<<place) == 0 {
				terms[i] |= 1 << place
				holding[place]++
			}
		})
	}
	for i := range lines {
		score := 0.0
		for place, term := range question.Wanted {
			if terms[i]&(1<<place) != 0 {
				score += term.Weight * Rarity(len(lines), holding[place])
			}
		}
		if score > 0 {
			found = append(found, scored{i, score, question.quotedBy(lines[i])})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	QuotedFirst(found, func(one *scored) bool { return one.quoted })
	order := make([]int, len(found))
	for i := range found {
		order[i] = found[i].line
	}
	return order
}

// joined returns the kept lines, with a gap for omitted ones.
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

// Snippet returns the lines of messages around the best match for a question, in about bytes bytes.
func Snippet(messages []conversation.Message, question Question, bytes int) string {
	parts := pieces(messages, question)
	if len(parts) == 0 {
		return ""
	}
	text := cut(parts[0].text, question, bytes, func(line string) int { return len(line) })
	if text == "" {
		text = strings.ToValidUTF8(parts[0].text[:min(bytes, len(parts[0].text))], "")
	}
	return text
}

// Matched returns the words of messages that match a question, as written there and without duplicates, the
// most wanted first. In a script without spaces it returns the common runs of characters.
func Matched(messages []conversation.Message, question Question, most int) []string {
	words := make([]string, len(question.Wanted))
	places := map[string]int{}
	for i, term := range question.Wanted {
		places[term.Text] = i
	}
	for _, document := range Documents(0, messages) {
		eachRun(document.text(), func(r run) {
			r.terms(func(term string) {
				if place, wanted := places[term]; wanted && words[place] == "" {
					words[place] = r.text
					if r.kind == ideogram {
						words[place] = term
					}
				}
			})
		})
	}
	var found []string
	for _, word := range words {
		if word == "" {
			continue
		}
		if last := len(found) - 1; last >= 0 && goesOn(found[last], word) {
			_, first := utf8.DecodeRuneInString(word)
			found[last] += word[first:]
			continue
		}
		if len(found) < most && !slices.ContainsFunc(found, func(before string) bool {
			return before == word || startsIdeogram(word) && strings.Contains(before, word)
		}) {
			found = append(found, word)
		}
	}
	return found
}

// goesOn reports whether a pair of ideograms continues the previous word: its first character is that word's
// last.
func goesOn(before, word string) bool {
	end, _ := utf8.DecodeLastRuneInString(before)
	start, size := utf8.DecodeRuneInString(word)
	return end == start && size < len(word) && isIdeogram(start)
}

func startsIdeogram(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return isIdeogram(first)
}
