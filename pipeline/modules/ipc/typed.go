package ipc

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

// typedShare is what the words that people typed may take of what a compaction can change.
// They are kept before everything else: people type few words, and every request that follows
// depends on them.
const typedShare = 0.3

// typedLengths are how many characters of one typed message are kept at most, the first that
// fits the share. Pastes are longer, and lose their middle.
var typedLengths = []int{4_000, 2_000, 1_000, 500, 250, shortestTyped}

// shortestTyped is what is kept of each typed message at L2 in characters, and the least that is
// kept of one at L3.
const shortestTyped = 120

// charactersPerToken is about how many characters of a person's words are one o200k token.
const charactersPerToken = 4

// typedIn returns what a person typed in a message, word for word.
func typedIn(message *conversation.Message) string {
	var texts []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text && conversation.IsTyped(block.Text) && !message.IsPasted(i) {
			texts = append(texts, commandLine(block.Text))
		}
	}
	return strings.TrimSpace(conversation.WithoutReminders(strings.Join(texts, "\n")))
}

// commandLine returns a slash command as a person typed it, of the tags in which clients send it;
// any other text as it is.
func commandLine(text string) string {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "<command-message>") && !strings.HasPrefix(trimmed, "<command-name>") {
		return text
	}
	_, rest, _ := strings.Cut(trimmed, "<command-name>")
	name, _, isNamed := strings.Cut(rest, "</command-name>")
	_, rest, _ = strings.Cut(trimmed, "<command-args>")
	arguments, behind, _ := strings.Cut(rest, "</command-args>")
	if !isNamed || strings.TrimSpace(behind) != "" {
		return text
	}
	return strings.TrimSpace(name + " " + strings.TrimSpace(arguments))
}

// typedBound is how much of what people typed records keep.
type typedBound struct {
	longest int // characters of one message
	from    int // L3 has nothing of the messages before this one, whose orders the ledger keeps
}

// of returns how many characters are kept of a message.
func (b typedBound) of(index int) int {
	if index < b.from {
		return shortestTyped
	}
	return b.longest
}

// boundTyped returns how much of what people typed fits its share. It depends on the originals and
// the window alone.
func (r *records) boundTyped() typedBound {
	const around = len("#1000 User: ")
	var indexes, lengths []int
	for _, t := range r.history.turns {
		for i := range t.messages {
			if t.messages[i].Role != conversation.User {
				continue
			}
			if length := utf8.RuneCountInString(typedIn(&t.messages[i])); length > 0 {
				indexes, lengths = append(indexes, t.From+i), append(lengths, length)
			}
		}
	}
	most := int(typedShare * charactersPerToken * float64(r.protection.budget.limit-r.protection.budget.fixed))
	for _, longest := range typedLengths {
		sum := 0
		for _, length := range lengths {
			sum += min(length, longest) + around
		}
		if sum <= most {
			return typedBound{longest: longest}
		}
	}
	bound := typedBound{shortestTyped, len(r.history.digests)}
	for i := len(lengths) - 1; i >= 0; i-- {
		if most -= min(lengths[i], shortestTyped) + around; most < 0 {
			break
		}
		bound.from = indexes[i]
	}
	return bound
}

// withoutMiddle returns a text of about so many characters at most: its beginning and its end.
func withoutMiddle(text string, characters, index int) string {
	if len(text) <= characters || utf8.RuneCountInString(text) <= characters {
		return text
	}
	head, tail := cutAt(text, characters*2/3), cutFrom(text, characters/3)
	left := utf8.RuneCountInString(text[head:tail])
	return strings.TrimSpace(text[:head]) + fmt.Sprintf(" [… %s characters archived as %s …] ", thousands(left), archived(index)) + strings.TrimSpace(text[tail:])
}
