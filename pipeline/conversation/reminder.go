package conversation

import (
	"strings"
	"unicode"
)

// reminder is the tag around text that clients add to user messages and tool results, and later remove.
const reminder = "system-reminder"

// WithoutReminders returns a text without the reminders that a client injected.
func WithoutReminders(text string) string { return withoutTag(text, reminder) }

// IsTyped reports whether a person typed any of a user's text: whether text is left after removing the parts
// that clients add in their own tags.
func IsTyped(text string) bool {
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "<") && !strings.HasSuffix(text, ">") {
		return text != "" && !strings.HasPrefix(text, "Base directory for this skill:")
	}
	text = strings.TrimSpace(WithoutEnvironment(WithoutReminders(text)))
	for _, tag := range []string{"user_instructions", "local-command-caveat", "local-command-stdout"} {
		text = withoutTag(text, tag)
	}
	text = strings.TrimSpace(text)
	return text != "" && !isImageMark(text)
}

// IsPasted reports whether the client put a text block in place of a slash command: the text of a command or
// a skill follows the tags that name it.
func (m *Message) IsPasted(i int) bool {
	return i > 0 && m.Role == User && m.Blocks[i].Kind == Text && m.Blocks[i-1].Kind == Text &&
		strings.HasPrefix(m.Blocks[i-1].Text, "<command-message>")
}

// isImageMark reports whether a text is the tag that Codex puts before or after an image.
func isImageMark(text string) bool {
	return text == "</image>" || strings.HasPrefix(text, "<image") && strings.IndexByte(text, '>') == len(text)-1
}

// withoutTag returns a text without its <tag>…</tag> parts.
func withoutTag(text, tag string) string {
	opening, closing := "<"+tag+">", "</"+tag+">"
	var kept strings.Builder
	for {
		before, inside, found := strings.Cut(text, opening)
		_, after, closed := strings.Cut(inside, closing)
		if !found || !closed {
			break
		}
		kept.WriteString(before)
		text = after
	}
	if kept.Len() == 0 {
		return text
	}
	kept.WriteString(text)
	return kept.String()
}

// delimiters escapes the opening and closing tags of elements with a meaning to models or clients: our own
// blocks in a prompt, and the reminders of clients.
var delimiters = strings.NewReplacer(
	"<compaction-bridge-recovery", "&lt;compaction-bridge-recovery", "</compaction-bridge-recovery", "&lt;/compaction-bridge-recovery",
	"<rehydrated-context", "&lt;rehydrated-context", "</rehydrated-context", "&lt;/rehydrated-context",
	"<learned-patterns", "&lt;learned-patterns", "</learned-patterns", "&lt;/learned-patterns",
	"<"+reminder, "&lt;"+reminder, "</"+reminder, "&lt;/"+reminder,
)

// Quoted returns text with escaped tags, so that it can't open or close one of our blocks.
func Quoted(text string) string { return delimiters.Replace(text) }

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

// WithoutHeader returns a text with its sender's name in place of the lines that Codex puts before a message
// from one of its agents to another:
//
//	Message Type: FINAL_ANSWER
//	Task name: /root
//	Sender: /root/look
//	Payload:
//
// Any other text is returned unchanged.
func WithoutHeader(text string) string {
	if !strings.HasPrefix(text, "Message Type: ") {
		return text
	}
	header, said, found := strings.Cut(text, "\nPayload:\n")
	_, sender, named := strings.Cut(header, "\nSender: ")
	if !found || !named {
		return text
	}
	return sender + ": " + said
}
