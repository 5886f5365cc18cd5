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
var typedLengths = []int{8_000, 4_000, 2_000, 1_000, 500, askedCharacters, 200, 120}

// charactersPerToken is about how many characters of a person's words are one o200k token.
const charactersPerToken = 4

// typedIn returns what a person typed in a message, word for word.
func typedIn(message *conversation.Message) string {
	var texts []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text && conversation.IsTyped(block.Text) {
			texts = append(texts, block.Text)
		}
	}
	return strings.TrimSpace(conversation.WithoutReminders(strings.Join(texts, "\n")))
}

// longestTyped returns how many characters of a typed message records keep. It depends on the
// originals and the window alone.
func (r *records) longestTyped() int {
	var lengths []int
	for _, t := range r.history.turns {
		for i := range t.messages {
			if t.messages[i].Role == conversation.User {
				lengths = append(lengths, utf8.RuneCountInString(typedIn(&t.messages[i])))
			}
		}
	}
	most := int(typedShare * charactersPerToken * float64(r.protection.budget.limit-r.protection.budget.fixed))
	for _, longest := range typedLengths {
		sum := 0
		for _, length := range lengths {
			sum += min(length, longest)
		}
		if sum <= most {
			return longest
		}
	}
	return typedLengths[len(typedLengths)-1]
}

// withoutMiddle returns a text of at most so many characters: its beginning and its end.
func withoutMiddle(text string, characters, index int) string {
	if len(text) <= characters || utf8.RuneCountInString(text) <= characters {
		return text
	}
	head, tail := cutAt(text, characters*2/3), cutFrom(text, characters/3)
	left := utf8.RuneCountInString(text[head:tail])
	return strings.TrimSpace(text[:head]) + fmt.Sprintf(" [… %s characters archived as %s …] ", thousands(left), archived(index)) + strings.TrimSpace(text[tail:])
}
