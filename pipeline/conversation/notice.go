package conversation

import (
	"strings"
	"unicode"
)

// noticeWords is how many of a notice's first words say what kind it is.
const noticeWords = 6

// NoticeKinds returns what kinds of notices a client's system message gives: those of the
// reminders in it by their first words, without numbers, paths and names, and all other
// text as it is. Two messages of one kind say the same of different times, such as how
// many tokens are left or what is on the to-do list: the later one holds.
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

// Reminders returns what stands in a text's <system-reminder>…</system-reminder> parts.
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

// noticeKind returns a notice's opening tag, or the first words of its first line that
// are words.
func noticeKind(content string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(content), "\n")
	if tag, rest, closed := strings.Cut(line, ">"); closed && strings.HasPrefix(tag, "<") {
		name, _, _ := strings.Cut(tag[1:], " ")
		return "<" + name + "> " + firstWords(rest)
	}
	return firstWords(line)
}

// firstWords returns the first words of a line in small letters, without what differs
// from one notice to the next: whatever holds a digit, a slash or another sign.
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
