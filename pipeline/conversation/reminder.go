package conversation

import "strings"

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
