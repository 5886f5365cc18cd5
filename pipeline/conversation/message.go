package conversation

import "encoding/json"

// Format names a wire format. A conversation leaves in the format it came in.
type Format string

// The formats that pass through the pipeline.
const (
	Anthropic       Format = "anthropic"
	OpenAIChat      Format = "openai-chat"
	OpenAIResponses Format = "openai-responses"
)

// Role says who speaks in a message.
type Role string

// The roles of all formats. Chat's "developer" is System; its "tool" messages and
// the outputs of Responses are Tool. Anthropic's tool results come in User messages.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Kind says what a block holds.
type Kind string

// The kinds of blocks. Opaque is everything that must travel byte for byte or
// not at all: server tools, encrypted reasoning, compaction items, unknown types.
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

	// Text is the text of Text and Thinking blocks, the joined text parts of a
	// ToolResult and the arguments of a ToolCall as the JSON they were sent in
	// (free text for custom tools).
	Text string

	// ID is the call's id in ToolCall and ToolResult blocks, and in Opaque blocks
	// that call a tool of the provider's or answer such a call; "" if absent.
	ID string

	// Name is a ToolCall's tool and an Opaque block's wire type.
	Name string

	// IsError marks a ToolResult that reports a failure.
	IsError bool

	// IsUnread marks a ToolCall or ToolResult of a kind that the program does not know:
	// of it the call's id and the kind, as Name, are read, and nothing else.
	IsUnread bool

	// Tools names the tools that a ToolResult or Opaque block makes known to the
	// model; nil if none.
	Tools []string

	// Media describes what a Media block, or a ToolResult that carries some, holds.
	Media []Attachment

	// Raw is the block as it was sent; nil for a block this program wrote or
	// changed and for a message whose content is a plain string.
	Raw json.RawMessage
}

// Attachment describes an image, document or sound without its bytes.
type Attachment struct {
	Type string // MIME type, or the block's wire type where none is given
	Size int    // bytes after base64 decoding; 0 for a URL or file id

	// Raw is the block or part as it was sent.
	Raw json.RawMessage
}

// Message is one element of the client's list: a message of Anthropic or Chat, an
// item of Responses.
type Message struct {
	Role   Role
	Blocks []Block

	// Raw is the message exactly as the client sent it; nil for one we wrote.
	Raw json.RawMessage

	// Changed says that Blocks no longer say what Raw does. A message that is
	// not changed is always forwarded as Raw.
	Changed bool

	// Traits are the flags that the blocks do not show: IsPart, IsPinned, IsBoundary,
	// HasPending, HasSettled, and HasOpaque where a block of another kind holds
	// something opaque.
	Traits Flags

	// Markers are the times to live ("5m", "1h") of the cache markers in Raw, in order.
	Markers []string
}

// Flags returns what kinds of blocks the message holds.
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

// Replace puts text in place of what block i held, keeping its kind, ids and
// error mark; media in it are gone.
func (m *Message) Replace(i int, text string) {
	block := m.Blocks[i]
	block.Text, block.Media, block.Raw = text, nil, nil
	m.Blocks = append([]Block(nil), m.Blocks...)
	m.Blocks[i] = block
	m.Changed = true
}

// UserText returns a message of the user that says a text.
func UserText(text string) Message {
	return Message{Role: User, Blocks: []Block{{Kind: Text, Text: text}}}
}
