package recall

import (
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
)

// read returns a message as text: texts, arguments and results word for word, and a line for each other part.
// A message that can't be parsed is returned as it is.
func (s *Server) read(format conversation.Format, raw []byte) string {
	codec, known := s.config.Codecs[format]
	if !known {
		return strings.ToValidUTF8(string(raw), "�")
	}
	message, err := codec.Parse(raw)
	if err != nil {
		return strings.ToValidUTF8(string(raw), "�")
	}
	parts := make([]string, 0, len(message.Blocks))
	for i := range message.Blocks {
		if part := readBlock(&message.Blocks[i]); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.ToValidUTF8(strings.Join(parts, "\n"), "�")
}

func readBlock(block *conversation.Block) string {
	switch block.Kind {
	case conversation.Text:
		return block.Text
	case conversation.Thinking:
		if block.Text == "" {
			return "[thinking, sealed by the provider]"
		}
		return "[thinking]\n" + block.Text
	case conversation.ToolCall:
		return fmt.Sprintf("[call %s of tool %s]\n%s", block.ID, block.Name, block.Text)
	case conversation.ToolResult:
		head := fmt.Sprintf("[result of call %s]", block.ID)
		if block.IsError {
			head = fmt.Sprintf("[result of call %s: an error]", block.ID)
		}
		return head + "\n" + block.Text + describe(block.Media)
	case conversation.Media:
		return strings.TrimPrefix(describe(block.Media), "\n")
	case conversation.Opaque:
		return fmt.Sprintf("[%s, %d bytes, not shown]", block.Name, len(block.Raw))
	default:
		return ""
	}
}

// describe returns a line for each attachment.
func describe(media []conversation.Attachment) string {
	var text strings.Builder
	for _, attachment := range media {
		size := ""
		if attachment.Size > 0 {
			size = fmt.Sprintf(", %d bytes", attachment.Size)
		}
		fmt.Fprintf(&text, "\n[%s%s, not shown]", attachment.Type, size)
	}
	return text.String()
}
