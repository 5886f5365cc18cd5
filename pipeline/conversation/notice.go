package conversation

import (
	"strings"
	"unicode"
)

// noticeWords is how many of a notice's first words determine its kind.
const noticeWords = 6

// NoticeKinds returns the kinds of notices in a client's system message: the first words of its reminders,
// without numbers, paths and names, and all other text unchanged. Two messages of the same kind report the
// same thing at different times, such as the remaining tokens or the to-do list, so that the later one
// replaces the earlier one.
func NoticeKinds(message *Message) []string {
	var kinds []string
	for i := range message.Blocks {
		text := message.Blocks[i].Text
		for _, content := range Reminders(text) {
			kinds = append(kinds, noticeKind(content))
		}
		if rest := strings.TrimSpace(WithoutReminders(text)); rest != "" {
			kinds = append(kinds, rest)
		}
	}
	return kinds
}

// Reminders returns the contents of a text's <system-reminder>…</system-reminder> parts.
func Reminders(text string) []string {
	var contents []string
	for {
		_, rest, found := strings.Cut(text, "<"+reminder+">")
		content, behind, closed := strings.Cut(rest, "</"+reminder+">")
		if !found || !closed {
			return contents
		}
		contents = append(contents, content)
		text = behind
	}
}

// noticeKind returns a notice's opening tag, or the first proper words of its first line.
func noticeKind(content string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(content), "\n")
	if tag, rest, closed := strings.Cut(line, ">"); closed && strings.HasPrefix(tag, "<") {
		name, _, _ := strings.Cut(tag[1:], " ")
		return "<" + name + "> " + firstWords(rest)
	}
	return firstWords(line)
}

// firstWords returns the first words of a line in lowercase, without words that differ between notices: those
// with a digit, a slash or another sign.
func firstWords(line string) string {
	var kept []string
	for word := range strings.FieldsSeq(strings.ToLower(line)) {
		word = strings.TrimRight(word, ".,:;!?")
		isWord := strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '-' && r != '#' }) < 0
		if word != "" && isWord && len(kept) < noticeWords {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}
