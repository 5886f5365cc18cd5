package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Normalize returns the bytes that identify a message's content, the same in all formats: the lasting parts
// of texts, then tool calls and results, in order. It ignores ids, cache markers, the order of keys, escapes,
// and whether text was sent as a string or as a block. It leaves out thinking, because clients drop it from
// older messages.
func Normalize(message conversation.Message) []byte { return normalize(message, mostDated) }

// mostDated is how many bytes of a message's texts are searched for the date and time. That is far more than
// clients write around a question.
const mostDated = 256 << 10

// normalize is Normalize with a limit on the bytes of text to search for the date and time.
func normalize(message conversation.Message, dated int) []byte {
	out := make([]byte, 0, 256)
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch block.Kind {
		case conversation.Text:
			text := block.Text
			if message.Role == conversation.User || message.Role == conversation.System {
				if dated > 0 {
					text = conversation.Lasting(text)
				} else {
					text = conversation.WithoutEnvironment(text)
				}
				dated -= len(block.Text)
			}
			out = appendSaid(out, 't', text)
		case conversation.ToolCall:
			out = appendPart(out, 'c', []byte(block.Name))
			out = appendArguments(out, block)
		case conversation.ToolResult:
			out = appendPart(out, 'r', strconv.AppendBool(nil, block.IsError))
			out = appendSaid(out, 't', block.Text)
			for _, media := range block.Media {
				out = appendPart(out, 'm', canonicalBlock(media.Raw))
			}
		case conversation.Opaque:
			out = appendPart(out, 'o', canonicalOpaque(block))
		case conversation.Media:
			out = appendPart(out, 'o', canonicalBlock(block.Raw))
		case conversation.Thinking:
		}
	}
	return out
}

// appendSaid appends the lasting part of a text, if any.
func appendSaid(out []byte, tag byte, text string) []byte {
	text = strings.TrimSpace(conversation.WithoutReminders(text))
	if text == "" {
		return out
	}
	return appendPart(out, tag, []byte(text))
}

// appendPart appends a part with its length, so that different lists of parts never have the same bytes.
func appendPart(out []byte, tag byte, part []byte) []byte {
	out = append(out, tag)
	out = strconv.AppendInt(out, int64(len(part)), 10)
	out = append(out, ':')
	return append(out, part...)
}

// canonicalDepth is how deep keys are sorted. Deeper values are used as sent.
const canonicalDepth = 48

// appendArguments appends a call's arguments in canonical form; free text unchanged. It avoids copies,
// because arguments may be most of a request.
func appendArguments(out []byte, block *conversation.Block) []byte {
	raw := bytes.TrimSpace(argumentsOf(block))
	if !json.Valid(raw) {
		return appendPart(out, 'a', raw)
	}
	start := len(out)
	out = appendCanonical(slices.Grow(out, len(raw)+partRoom), raw, 1)
	head := strconv.AppendInt(append(make([]byte, 0, partRoom), 'a'), int64(len(out)-start), 10)
	return slices.Insert(out, start, append(head, ':')...)
}

// argumentsOf returns a call's arguments, without a copy if the request contains them in the same form.
func argumentsOf(block *conversation.Block) json.RawMessage {
	if input := Get(block.Raw, "input"); string(input) == block.Text {
		return input
	}
	return json.RawMessage(block.Text)
}

// partRoom is the maximum number of bytes before a part.
const partRoom = 22

// canonicalOpaque returns an opaque block in canonical form. A block for an object that the provider stores
// is reduced to the object's id, because clients send back the id but not the other members of the answer.
func canonicalOpaque(block *conversation.Block) []byte {
	switch block.Name {
	case "item_reference", "audio":
		if id := Get(block.Raw, "id"); id != nil {
			return append([]byte(block.Name+":"), appendCanonical(nil, id, 1)...)
		}
	}
	return canonicalBlock(block.Raw)
}

// canonicalBlock returns a block in canonical form, without labels.
func canonicalBlock(raw json.RawMessage) []byte {
	return appendCanonical(make([]byte, 0, len(raw)), raw, 0)
}

// appendCanonical appends a JSON value without white space, with sorted keys and uniformly escaped strings;
// at depth 0, a block without its labels.
func appendCanonical(out []byte, raw json.RawMessage, depth int) []byte {
	if len(raw) == 0 || depth == canonicalDepth {
		return append(out, raw...)
	}
	switch raw[0] {
	case '"':
		if bytes.IndexByte(raw, '\\') < 0 {
			return append(out, raw...)
		}
		if text, ok := String(raw); ok {
			return AppendQuote(out, text)
		}
	case '[':
		out = append(out, '[')
		for i, element := range Elements(raw) {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendCanonical(out, element, depth+1)
		}
		return append(out, ']')
	case '{':
		return appendObject(out, raw, depth)
	}
	return append(out, raw...)
}

func appendObject(out []byte, raw json.RawMessage, depth int) []byte {
	type member struct {
		name  string
		value json.RawMessage
	}
	var members []member
	for name, value := range Members(raw) {
		if depth == 0 && isLabel(name) {
			continue
		}
		members = append(members, member{string(name), value})
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	out = append(out, '{')
	for i, member := range members {
		if i+1 < len(members) && members[i+1].name == member.name {
			continue // of duplicates the last one counts
		}
		out = append(AppendQuote(out, member.name), ':')
		out = append(appendCanonical(out, member.value, depth+1), ',')
	}
	return append(bytes.TrimSuffix(out, []byte(",")), '}')
}

// isLabel reports whether a block's member only names or marks it, without content.
func isLabel(name []byte) bool {
	switch string(name) {
	case "id", "tool_use_id", "call_id", "tool_call_id", "status", "cache_control":
		return true
	}
	return false
}

// Digest reads one element of a list and returns its digest; count counts its tokens. Unlike Open it checks
// every byte. The error is an *Invalid if raw is not valid JSON, or otherwise the codec's.
func Digest(codec Codec, raw json.RawMessage, count func(conversation.Message) int) (conversation.Digest, error) {
	return digestOf(codec, raw, count, codec.Normalize)
}

// DatedDigest is Digest for messages far behind the first of a large request. It does not ignore dates and
// times in texts, so that the request costs about the same whatever it contains.
func DatedDigest(codec Codec, raw json.RawMessage, count func(conversation.Message) int) (conversation.Digest, error) {
	return digestOf(codec, raw, count, func(message conversation.Message) []byte { return normalize(message, 0) })
}

func digestOf(codec Codec, raw json.RawMessage, count func(conversation.Message) int, identifies func(conversation.Message) []byte) (conversation.Digest, error) {
	if !json.Valid(raw) {
		return conversation.Digest{}, invalidJSON(raw)
	}
	message, err := codec.Parse(raw)
	if err != nil {
		return conversation.Digest{}, fmt.Errorf("parse: %w", err)
	}
	digest := conversation.Digest{
		Sum:      sha256.Sum256(raw),
		Identity: identity(message.Role, identifies(message)),
		Role:     message.Role,
		Flags:    message.Flags(),
		Tokens:   count(message),
		Markers:  len(message.Markers),
	}
	if digest.Markers > 0 {
		digest.MarkerTTL = message.Markers[digest.Markers-1]
	}
	return digest, nil
}

func identity(role conversation.Role, content []byte) conversation.Hash {
	hash := sha256.New()
	hash.Write([]byte(role))
	hash.Write([]byte{0})
	hash.Write(content)
	return conversation.Hash(hash.Sum(nil))
}

func invalidJSON(raw json.RawMessage) error {
	var value json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(raw, &value); errors.As(err, &syntax) {
		return &Invalid{Message: fmt.Sprintf("not valid JSON at its byte %d: %s", syntax.Offset, syntax)}
	}
	return &Invalid{Message: "not valid JSON"}
}

// How likely a body has a codec's format.
const (
	Possible = 1
	Likely   = 2
	Certain  = 3
)

// Hints are the parts of a body by which its format is recognized.
type Hints struct {
	HasChatRoles bool // a message of the roles tool, system or developer, or with tool_calls

	members map[string]json.RawMessage
}

// Has reports whether the body has a member.
func (h Hints) Has(member string) bool {
	_, has := h.members[member]
	return has
}

// IsInteraction reports whether the body is one of Gemini's Interactions API, whose input is otherwise that of
// Responses.
func (h Hints) IsInteraction() bool {
	if !h.Has("input") {
		return false
	}
	if slices.ContainsFunc([]string{"system_instruction", "generation_config", "previous_interaction_id", "agent"}, h.Has) {
		return true
	}
	for _, first := range Elements(h.members["input"]) {
		return Text(first, "type") == "user_input"
	}
	return false
}

// HintsOf reads the hints of a body. ok is false unless the body is a JSON object with messages in a
// supported form.
func HintsOf(body []byte) (hints Hints, ok bool) {
	if json.Unmarshal(body, &hints.members) != nil {
		return Hints{}, false
	}
	var messages []struct {
		Role      string          `json:"role"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	if hints.Has("messages") && json.Unmarshal(hints.members["messages"], &messages) != nil {
		return Hints{}, false
	}
	for _, message := range messages {
		switch message.Role {
		case "tool", "system", "developer":
			hints.HasChatRoles = true
		}
		hints.HasChatRoles = hints.HasChatRoles || message.ToolCalls != nil
	}
	return hints, true
}
