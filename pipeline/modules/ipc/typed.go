package ipc

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

// typedShare bounds typed messages as a share of the part that a compaction can change. They are
// kept before everything else, because people type few words and every later request depends on
// them.
const typedShare = 0.33

// typedLengths are limits in characters for one typed message. The first one that fits the share
// applies. Pastes are longer, and lose their middle.
var typedLengths = []int{4_000, 2_000, 1_000, 500, 250, shortestTyped}

// shortestTyped is the minimum of each typed message at L2 in characters, and of each one kept at
// L3.
const shortestTyped = 120

// charactersPerToken is about how many characters of a person's words are one o200k token.
const charactersPerToken = 4

// typedIn returns the text that a person typed in a message, word for word.
func typedIn(message *conversation.Message) string {
	var texts []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text && conversation.IsTyped(block.Text) && !message.IsPasted(i) {
			texts = append(texts, commandLine(block.Text))
		}
	}
	return strings.TrimSpace(conversation.WithoutReminders(strings.Join(texts, "\n")))
}

// commandLine returns a slash command as a person typed it, without the client's tags; any other
// text stays unchanged.
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

// typedBound is the limit of typed text in records.
type typedBound struct {
	longest int // characters of one message
	from    int // L3 leaves out the messages before this one, because the ledger keeps their orders
}

// of returns how many characters are kept of a message.
func (b typedBound) of(index int) int {
	if index < b.from {
		return shortestTyped
	}
	return b.longest
}

// boundTyped returns the limit at which the typed messages fit their share. It depends only on the
// originals and the window.
func (r *records) boundTyped() typedBound {
	const around = len("#1000 User: ")
	var indexes, lengths []int
	for _, t := range r.history.turns {
		calls := t.calls()
		for i := range calls {
			if said, _ := calls[i].Rejection(); said != "" {
				indexes, lengths = append(indexes, calls[i].Answered), append(lengths, utf8.RuneCountInString(said))
			}
		}
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
