package summary

import (
	"fmt"
	"strconv"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/excerpts"
)

// The limits of each item in a transcript, in characters.
const (
	typedCharacters    = 6_000
	saidCharacters     = 2_000
	argumentCharacters = 500
	resultCharacters   = 800
)

// turn is one turn of the lane with its messages.
type turn struct {
	conversation.Turn

	messages []conversation.Message
}

// turnsOf groups messages, the first of which is message 0 of the lane.
func turnsOf(messages []conversation.Message) []turn {
	digests := make([]conversation.Digest, len(messages))
	for i := range messages {
		digests[i] = conversation.Digest{Role: messages[i].Role, Flags: messages[i].Flags()}
	}
	var turns []turn
	for _, bounds := range conversation.Turns(digests) {
		turns = append(turns, turn{Turn: bounds, messages: messages[bounds.From:bounds.To]})
	}
	return turns
}

// transcript returns a turn as data: a head line for each text or action, and below it the text,
// each line after a bar. Therefore no line of it can pass for a head line or for a delimiter of
// this program.
func (t *turn) transcript() string {
	var text strings.Builder
	for i := range t.messages {
		message, index := &t.messages[i], t.From+i
		for j := range message.Blocks {
			writeBlock(&text, index, message.Role, &message.Blocks[j])
		}
	}
	return text.String()
}

func writeBlock(text *strings.Builder, index int, role conversation.Role, block *conversation.Block) {
	head, content, limit := "", block.Text, saidCharacters
	switch block.Kind {
	case conversation.Text:
		head = string(role)
		if role == conversation.User {
			content, limit = Plain(block.Text), typedCharacters
		}
	case conversation.ToolCall:
		head, limit = "call of "+oneLine(block.Name), argumentCharacters
	case conversation.ToolResult:
		head, limit = "tool result", resultCharacters
		if block.IsError {
			head = "tool result, failed"
		}
		content = Plain(block.Text)
	case conversation.Media:
		content = ""
	case conversation.Thinking, conversation.Opaque:
		return // not a part of the conversation
	}
	content = shortened(strings.TrimSpace(content), limit)
	if media := placeholders(block.Media); media != "" {
		content = strings.TrimSpace(content + "\n" + media)
	}
	if content == "" {
		return
	}
	if head == "" {
		head = string(role)
	}
	text.WriteString("[#" + strconv.Itoa(index) + " " + head + "]\n")
	writeQuoted(text, content)
}

// writeQuoted writes text as data: each line after a bar, our delimiters escaped.
func writeQuoted(text *strings.Builder, content string) {
	for line := range strings.Lines(escaped(content)) {
		text.WriteString("| " + strings.TrimRight(line, "\r\n") + "\n")
	}
}

// escaped returns a text with our delimiters escaped.
func escaped(text string) string {
	for _, name := range []string{"transcript", "previous-summary", "context-summary"} {
		for _, tag := range []string{"<" + name, "</" + name} {
			text = replaceFold(text, tag, "&lt;"+tag[1:])
		}
	}
	return text
}

// replaceFold replaces old, ignoring the case of ASCII letters.
func replaceFold(text, old, replacement string) string {
	lower := strings.ToLower(text)
	if len(lower) != len(text) || !strings.Contains(lower, old) {
		return strings.ReplaceAll(text, old, replacement)
	}
	var out strings.Builder
	for {
		at := strings.Index(lower, old)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:at] + replacement)
		text, lower = text[at+len(old):], lower[at+len(old):]
	}
}

// Plain returns a text without the parts that clients and this program inject into it: reminders,
// recovery blocks, recalled turns, records of earlier turns.
func Plain(text string) string {
	text = conversation.WithoutReminders(text)
	for _, tag := range []string{"compaction-bridge-recovery", "rehydrated-context", "learned-patterns", "context-summary"} {
		text = withoutTag(text, tag)
	}
	for _, marker := range []string{"[AUTO CONTEXT COMPRESSION]", "[CONTEXT SUMMARY]"} {
		if strings.HasPrefix(strings.TrimSpace(text), marker) {
			return ""
		}
	}
	return text
}

// withoutTag returns a text without its <tag>…</tag> parts; an unclosed one extends to the end.
func withoutTag(text, tag string) string {
	for {
		before, rest, found := strings.Cut(text, "<"+tag+">")
		if !found {
			return text
		}
		_, after, _ := strings.Cut(rest, "</"+tag+">")
		text = before + after
	}
}

// shortened returns the beginning and the end of a text if it has more than so many characters.
func shortened(text string, characters int) string {
	return excerpts.Ends(text, characters, func(left int) string { return fmt.Sprintf("\n… (%d characters left out) …\n", left) })
}

func placeholders(media []conversation.Attachment) string {
	texts := make([]string, 0, len(media))
	for _, attachment := range media {
		text := "[" + oneLine(attachment.Type)
		if attachment.Size > 0 {
			text += ", " + strconv.Itoa(attachment.Size) + " bytes"
		}
		texts = append(texts, text+"]")
	}
	return strings.Join(texts, " ")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
