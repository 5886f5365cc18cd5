package tokens

import (
	"bytes"
	"encoding/json"

	"palimpsest/pipeline/conversation"
)

// A provider's additions around the parts of a conversation, in tokens. No provider documents them in full;
// Calibration covers the difference.
const (
	aroundMessage = 4 // role and delimiters
	aroundCall    = 8 // marks of a call and names of its arguments
	aroundResult  = 6 // marks of a result
	aroundText    = 1 // separator between text blocks
)

// ToolInstructions is how many o200k tokens Anthropic adds to the prompt of a request with tools: 346 of
// Claude's tokens, "tool use system prompt" in
// https://docs.claude.com/en/docs/agents-and-tools/tool-use/overview.
const ToolInstructions = 260

// Message estimates the tokens of a message. The first 512 KiB of its texts, calls and results are counted
// exactly, the rest of them roughly. Other content is estimated as in media.go and counter.go.
// Base64 of media never counts as text.
func (c *Counter) Message(message conversation.Message) int { return c.newTally().message(message) }

// Text estimates the tokens of a text as a separate message.
func (c *Counter) Text(text string) int {
	return c.Message(conversation.UserText(text))
}

func (t *tally) message(message conversation.Message) int {
	sum := aroundMessage
	for i := range message.Blocks {
		sum += t.block(&message.Blocks[i])
	}
	return sum
}

func (t *tally) block(block *conversation.Block) int {
	sum := 0
	if block.IsUnread {
		return t.json(block.Raw)
	}
	switch block.Kind {
	case conversation.Text:
		sum = aroundText + t.text(block.Text)
	case conversation.Thinking:
		// The text may be a summary of the sealed content, or be missing.
		sum = max(t.text(block.Text), sealedIn(block.Raw))
	case conversation.ToolCall:
		sum = aroundCall + t.text(block.Name) + t.text(block.Text)
	case conversation.ToolResult:
		sum = aroundResult + t.text(block.Text)
	case conversation.Opaque:
		sum = t.json(block.Raw)
	case conversation.Media:
	}
	for i := range block.Media {
		sum += t.attachment(&block.Media[i])
	}
	return sum
}

// Fixed estimates the tokens of content before the conversation: a system prompt as a string or a list of
// blocks, or tool schemas. JSON strings are counted decoded, as the model reads them. The limits of exact
// counts are those of Message.
func (c *Counter) Fixed(raw json.RawMessage) int {
	t := c.newTally()
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) > 0 && raw[0] == '"':
		return t.text(decoded(raw))
	case len(raw) == 0 || raw[0] != '[':
		return t.json(raw)
	}
	sum := 0
	for element := range elements(raw) {
		sum += t.fixedElement(element)
	}
	return sum
}

func (t *tally) fixedElement(raw json.RawMessage) int {
	if text, is := textBlock(raw); is {
		return aroundText + t.text(text)
	}
	return t.json(raw)
}

// textBlock returns the text of a block of type text.
func textBlock(raw json.RawMessage) (text string, is bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return "", false
	}
	depth, isText, quoted := 0, false, []byte(nil)
	for values := (scanner{raw: raw}); ; {
		token, kind := values.next()
		switch {
		case kind == ended:
			if isText && quoted != nil {
				return decoded(quoted), true
			}
			return "", false
		case kind == stringValue && depth == 1 && string(values.name) == "type":
			isText = string(token) == `"text"`
		case kind == stringValue && depth == 1 && string(values.name) == "text":
			quoted = token
		case kind == other && (token[0] == '{' || token[0] == '['):
			depth++
		case kind == other && (token[0] == '}' || token[0] == ']'):
			depth--
		}
	}
}
