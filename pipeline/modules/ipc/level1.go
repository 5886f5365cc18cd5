package ipc

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

// keptCharacters is how much L1 leaves of a tool result.
const keptCharacters = 200

// surelySmaller is how many bytes less a text has that need not be counted to know
// that it has fewer tokens.
const surelySmaller = 160

// cutResults returns a message with its tool results cut for L1, and its o200k
// tokens; as many as it had if it has no shorter form, as a screenshot has none. What
// is no tool result stays as it is, byte for byte.
func (p *planner) cutResults(index int, message conversation.Message, digest conversation.Digest) (conversation.Message, int) {
	results := 0
	for i := range message.Blocks {
		if message.Blocks[i].Kind == conversation.ToolResult {
			results++
		}
	}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.ToolResult || len(block.Tools) > 0 {
			continue
		}
		text := cutResult(index, block, p.config.ObservationMasking)
		// The message is weighed below: one result needs no weighing of its own.
		if text != block.Text && (results == 1 || p.smaller(block, text)) {
			message.Replace(i, text)
		}
	}
	if !message.Changed {
		return message, digest.Tokens
	}
	if digest.Flags.Has(conversation.HasMedia) {
		if _, err := p.exchange.Codec.Encode(message); err != nil {
			return message, digest.Tokens
		}
	}
	return message, p.counter.Message(message)
}

// cutResult returns what L1 leaves of a tool result: keptCharacters of it and how
// many there were.
func cutResult(index int, block *conversation.Block, masked bool) string {
	media := describe(index, block.Media)
	length := utf8.RuneCountInString(block.Text)
	if masked {
		text := fmt.Sprintf("[TOOL OUTPUT ARCHIVED] %s characters as %s", thousands(length), archived(index))
		return joinNonEmpty("\n", text, media)
	}
	if length <= keptCharacters {
		return joinNonEmpty("\n", block.Text, media)
	}
	kept := excerptOf(block.Text)
	rest := length - utf8.RuneCountInString(kept.head) - utf8.RuneCountInString(kept.middle) - utf8.RuneCountInString(kept.tail)
	text := fmt.Sprintf("%s [%s of %s characters archived as %s]", kept, thousands(rest), thousands(length), archived(index))
	return joinNonEmpty("\n", text, media)
}

// smaller reports whether a tool result has fewer tokens as text.
func (p *planner) smaller(block *conversation.Block, text string) bool {
	if len(block.Media) > 0 {
		return true // a placeholder is smaller than any attachment
	}
	if len(block.Text)-len(text) >= surelySmaller {
		return true
	}
	return len(text) < len(block.Text) && p.countText(text) < p.countText(block.Text)
}

// describe returns a placeholder for each attachment; empty for none.
func describe(index int, media []conversation.Attachment) string {
	placeholders := make([]string, 0, len(media))
	for _, attachment := range media {
		size := ""
		if attachment.Size > 0 {
			size = ", " + thousands(attachment.Size) + " bytes"
		}
		placeholders = append(placeholders, fmt.Sprintf("[%s%s, archived as %s]", attachment.Type, size, archived(index)))
	}
	return strings.Join(placeholders, " ")
}

// truncateResult returns a tool result's beginning and end of together so many
// characters, with a pointer to the rest.
func truncateResult(index int, block *conversation.Block, characters int) string {
	length := utf8.RuneCountInString(block.Text)
	head := cutAt(block.Text, characters*2/3)
	tail := cutFrom(block.Text, characters-characters*2/3)
	if tail <= head {
		return block.Text
	}
	missing := utf8.RuneCountInString(block.Text[head:tail])
	text := fmt.Sprintf("%s\n… [%s of %s characters archived as %s] …\n%s",
		block.Text[:head], thousands(missing), thousands(length), archived(index), block.Text[tail:])
	return joinNonEmpty("\n", text, describe(index, block.Media))
}

func joinNonEmpty(separator string, texts ...string) string {
	kept := texts[:0:0]
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, separator)
}
