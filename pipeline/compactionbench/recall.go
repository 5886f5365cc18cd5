package compactionbench

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/replay"
)

// Recall is how many identifiers of compressed turns that later turns came back to
// an epoch left before the model, and how many as much text would have that is
// taken from the beginning of everything that was said, called and returned.
// What stands in the turns that the epoch left alone counts for neither.
type Recall struct {
	Ours  Share `json:"ours"`
	First Share `json:"first_sentences"`
}

// Gain returns by how many percentage points ours is better.
func (r Recall) Gain() float64 {
	if r.Ours.Of == 0 {
		return 0
	}
	return 100 * float64(r.Ours.Kept-r.First.Kept) / float64(r.Ours.Of)
}

// and returns two recalls together.
func (r Recall) and(other Recall) Recall {
	return Recall{r.Ours.and(other.Ours), r.First.and(other.First)}
}

// recallAt returns the recall of an epoch.
func (r *reading) recallAt(step *replay.Step) Recall {
	var recall Recall
	covers := step.Projection.Covers
	ours, size := r.rendered(step)
	first := r.firstSentencesOf(covers, size)
	var tail []byte
	for _, message := range r.messages[covers:step.Messages] {
		tail = append(tail, message.raw...)
	}
	for _, identifier := range r.identifiers() {
		if identifier.first >= covers || identifier.lastUse < step.Messages ||
			bytes.Contains(tail, []byte(identifier.text)) || bytes.Contains(r.head, []byte(identifier.text)) {
			continue
		}
		recall.Ours = recall.Ours.with(bytes.Contains(ours, []byte(identifier.text)))
		recall.First = recall.First.with(strings.Contains(first, identifier.text))
	}
	return recall
}

// rendered returns what a projection sends and its o200k tokens.
func (r *reading) rendered(step *replay.Step) (text []byte, size int) {
	for _, part := range step.Projection.Parts {
		size += part.Tokens
		if part.Raw != nil {
			text = append(text, part.Raw...)
			continue
		}
		for _, message := range r.messages[part.From:part.To] {
			text = append(text, message.raw...)
		}
	}
	return text, size
}

// firstSentencesOf returns the beginnings of all that the first covers messages
// say, each of the same length, together at most size o200k tokens.
func (r *reading) firstSentencesOf(covers, size int) string {
	var texts []string
	longest := 0
	for i := range r.messages[:covers] {
		for _, block := range r.messages[i].Blocks {
			text := conversation.WithoutReminders(block.Text)
			if block.Kind == conversation.ToolCall {
				text = block.Name + " " + text
			}
			if block.Kind != conversation.Thinking && text != "" {
				texts = append(texts, text)
				longest = max(longest, len(text))
			}
		}
	}
	beginnings := func(characters int) string {
		var all strings.Builder
		for _, text := range texts {
			all.WriteString(cut(text, characters) + "\n")
		}
		return all.String()
	}
	low, high := 0, longest
	for low < high {
		middle := (low + high + 1) / 2
		if text := beginnings(middle); len(text) < size || len(text) < size*10 && r.counter.Count(text) <= size {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return beginnings(low)
}

// identifier is a path, symbol, number or text of an error.
type identifier struct {
	text    string
	first   int // message
	lastUse int // message in which it was typed, said or called with
}

// identifiers returns what a talk comes back to: the facts that its maker knows
// of, else whatever looks like an identifier.
func (r *reading) identifiers() []identifier {
	if r.found != nil {
		return r.found
	}
	known := map[string]*identifier{}
	var order []string
	member := regexp.MustCompile(`"[\w-]+"\s*:`) // names nothing of the session
	for i := range r.messages {
		for _, block := range r.messages[i].Blocks {
			if block.Kind == conversation.Thinking || block.Kind == conversation.Opaque {
				continue
			}
			said := block.Text
			if block.Kind == conversation.ToolCall {
				said = member.ReplaceAllString(said, " ")
			}
			for _, text := range r.identifiersIn(said) {
				if known[text] == nil {
					known[text] = &identifier{text: text, first: i, lastUse: i}
					order = append(order, text)
				}
				if block.Kind != conversation.ToolResult {
					known[text].lastUse = i
				}
			}
		}
	}
	r.found = []identifier{}
	for _, text := range order {
		if one := known[text]; one.lastUse > one.first {
			r.found = append(r.found, *one)
		}
	}
	return r.found
}

// identifiersIn returns the identifiers that a text holds, each once.
func (r *reading) identifiersIn(text string) []string {
	var found []string
	if r.talk.Facts != nil {
		for _, fact := range r.talk.Facts {
			if strings.Contains(text, fact) {
				found = append(found, fact)
			}
		}
		return found
	}
	for word := range strings.FieldsFuncSeq(text, func(letter rune) bool { return !isInner(letter) }) {
		word = strings.Trim(word, "./-")
		if len(word) >= 5 && len(word) <= 100 && identifies(word) {
			found = append(found, word)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// isInner reports whether a letter may stand inside an identifier.
func isInner(letter rune) bool {
	return letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z' || letter >= '0' && letter <= '9' ||
		letter == '_' || letter == '.' || letter == '/' || letter == '-'
}

// identifies reports whether a word is a path, a symbol or a number of four digits
// or more, not a word of a language.
func identifies(word string) bool {
	digits, inner := 0, false
	for i, letter := range word {
		switch {
		case letter >= '0' && letter <= '9':
			digits++
		case letter == '/' || letter == '_' || letter == '.':
			inner = inner || i > 0
		case letter >= 'A' && letter <= 'Z':
			inner = inner || i > 0 && word[i-1] >= 'a' && word[i-1] <= 'z'
		}
	}
	return inner || digits >= 4
}
