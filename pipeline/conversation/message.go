package conversation

import "encoding/json"

// Format names a wire format. A conversation is sent in the format in which it arrived.
type Format string

// The supported formats.
const (
	Anthropic       Format = "anthropic"
	OpenAIChat      Format = "openai-chat"
	OpenAIResponses Format = "openai-responses"
	Gemini          Format = "gemini"

	GeminiInteractions Format = "gemini-interactions"
)

// Role is the speaker of a message.
type Role string

// The roles of all formats. Chat's "developer" is System; its "tool" messages and
// the outputs of Responses are Tool. Anthropic's tool results come in User messages.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Kind is the kind of a block's content.
type Kind string

// The kinds of blocks. Opaque blocks must be sent byte for byte or left out: server tools, encrypted
// reasoning, compaction items, unknown types.
const (
	Text       Kind = "text"
	Thinking   Kind = "thinking"
	ToolCall   Kind = "tool_call"
	ToolResult Kind = "tool_result"
	Media      Kind = "media"
	Opaque     Kind = "opaque"
)

// Block is one piece of a message.
type Block struct {
	Kind Kind

	// Text is the text of Text and Thinking blocks, the joined text parts of a ToolResult, and the original
	// JSON arguments of a ToolCall (free text for custom tools).
	Text string

	// ID is the call's id in ToolCall and ToolResult blocks, and in Opaque blocks that call a provider's tool
	// or answer such a call; "" if absent.
	ID string

	// Name is a ToolCall's tool and an Opaque block's wire type.
	Name string

	// IsError marks a ToolResult that reports a failure.
	IsError bool

	// IsUnread marks a ToolCall or ToolResult of an unknown kind. Only its call id and its kind, as Name, are
	// read.
	IsUnread bool

	// Tools names the tools that a ToolResult or Opaque block makes known to the model; nil if absent.
	Tools []string

	// Media describes the media in a Media block or a ToolResult.
	Media []Attachment

	// Raw is the block as it was sent; nil for a block that this program wrote or changed, and for a message
	// whose content is a plain string.
	Raw json.RawMessage
}

// Attachment describes an image, document or sound without its bytes.
type Attachment struct {
	Type string // MIME type, or the block's wire type if absent
	Size int    // bytes after base64 decoding; 0 for a URL or file id

	// Raw is the block or part as it was sent.
	Raw json.RawMessage
}

// Message is one element of the client's list: a message of Anthropic or Chat, an
// item of Responses.
type Message struct {
	Role   Role
	Blocks []Block

	// Raw is the message exactly as the client sent it; nil for one that we wrote.
	Raw json.RawMessage

	// Changed means that Blocks differ from Raw. An unchanged message is always forwarded as Raw.
	Changed bool

	// Traits are the flags that can't be derived from the blocks: IsPart, IsPinned, IsBoundary, HasPending,
	// HasSettled, and HasOpaque if a block of another kind contains opaque content.
	Traits Flags

	// Markers are the times to live ("5m", "1h") of the cache markers in Raw, in order.
	Markers []string
}

// Flags returns the kinds of blocks in the message.
func (m *Message) Flags() Flags {
	flags := m.Traits
	for i := range m.Blocks {
		block := &m.Blocks[i]
		if len(block.Media) > 0 {
			flags |= HasMedia
		}
		if len(block.Tools) > 0 {
			flags |= LoadsTools
		}
		switch block.Kind {
		case Text:
			if m.Role == User && IsTyped(block.Text) {
				flags |= HasTyped
			}
		case Thinking:
			flags |= HasThinking
		case ToolCall:
			flags |= HasCall
		case ToolResult:
			flags |= HasResult
		case Media:
			flags |= HasMedia
		case Opaque:
			flags |= HasOpaque
		}
	}
	return flags
}

// Replace replaces the content of block i by text. It keeps the block's kind, ids and error mark, and removes
// its media.
func (m *Message) Replace(i int, text string) {
	block := m.Blocks[i]
	block.Text, block.Media, block.Raw = text, nil, nil
	m.Blocks = append([]Block(nil), m.Blocks...)
	m.Blocks[i] = block
	m.Changed = true
}

// UserText returns a user message with a text.
func UserText(text string) Message {
	return Message{Role: User, Blocks: []Block{{Kind: Text, Text: text}}}
}
