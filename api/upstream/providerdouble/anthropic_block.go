package providerdouble

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // sizes of pictures
	_ "image/png"  // sizes of pictures
	"slices"
	"strings"
	"sync"
)

// block is one content block of Anthropic's, in this package's own representation.
type block struct {
	kind      string
	members   members
	raw       json.RawMessage
	text      string // of text and thinking blocks
	id        string // of tool_use and mcp_tool_use; tool_use_id of results
	name      string // of a tool_use
	signature string // of thinking; the data of redacted_thinking
	cache     *cacheMarker
	inner     []*block       // the content of a tool_result
	nested    []*cacheMarker // on parts of blocks other than tool results

	sum    [sha256.Size]byte // of everything but cache markers
	tokens int               // o200k

	once      sync.Once
	canonical [sha256.Size]byte // see meaning
}

// cacheMarker is a cache_control member.
type cacheMarker struct{ hour bool }

// message is one message of Anthropic's.
type message struct {
	role   string
	blocks []*block
}

func (b *block) isThinking() bool { return b.kind == "thinking" || b.kind == "redacted_thinking" }

func (m *message) has(kind string) bool {
	return slices.ContainsFunc(m.blocks, func(b *block) bool { return b.kind == kind })
}

// memberNames lists the members of the block types whose members are checked.
func memberNames(kind string) []string {
	switch kind {
	case "text":
		return []string{"type", "text", "cache_control", "citations"}
	case "image":
		return []string{"type", "source", "cache_control", "transformations"}
	case "tool_use":
		return []string{"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}
	case "tool_result":
		return []string{"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}
	case "thinking":
		return []string{"type", "thinking", "signature"}
	case "redacted_thinking":
		return []string{"type", "data"}
	default:
		return nil
	}
}

// rolesOf returns the roles whose messages may hold a block type; empty for an unknown type.
func rolesOf(kind string) string {
	switch kind {
	case "text":
		return "user assistant system"
	case "image", "search_result", "tool_result", "browser_state":
		return "user"
	case "document", "container_upload", "compaction", "fallback":
		return "user assistant"
	case "tool_addition", "tool_removal":
		return "system"
	case "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result",
		"mcp_tool_listing", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
		"advisor_tool_result":
		return "assistant"
	default:
		return ""
	}
}

// parseMessage reads one message; path names it in refusals.
func (a *anthropicReader) parseMessage(raw json.RawMessage, path string) (*message, *Rejection) {
	key := sha256.Sum256(raw)
	if known, ok := a.messages.find(key); ok {
		return known, nil
	}
	m, ok := objectMembers(raw)
	if !ok {
		return nil, refuse("%s: Input should be a valid dictionary or object to extract fields from", path)
	}
	role, ok := m.text("role")
	if !ok {
		return nil, refuse("%s.role: Field required", path)
	}
	if role != "user" && role != "assistant" && role != "system" {
		return nil, refuse(`messages: Unexpected role "%s". Allowed roles are "user" or "assistant".`, role)
	}
	if name := m.extra("role", "content", "clear_at", "output_config"); name != "" && !a.config.AllowUnknown {
		return nil, refuse("%s.%s: Extra inputs are not permitted", path, name)
	}
	if _, ok := m["content"]; !ok {
		return nil, refuse("%s.content: Field required", path)
	}
	blocks, rejection := a.parseContent(m["content"], role, path+".content")
	if rejection != nil {
		return nil, rejection
	}
	parsed := &message{role: role, blocks: blocks}
	a.messages.keep(key, parsed)
	return parsed, nil
}

// parseContent reads a string or a list of blocks.
func (a *anthropicReader) parseContent(raw json.RawMessage, role, path string) ([]*block, *Rejection) {
	if text, ok := stringValue(raw); ok {
		if text == "" {
			return nil, nil
		}
		return []*block{a.textBlock(text)}, nil
	}
	list, ok := elements(raw)
	if !ok {
		return nil, refuse("%s: Input should be a valid string or list", path)
	}
	blocks := make([]*block, 0, len(list))
	for i, element := range list {
		b, rejection := a.parseBlock(element, role, at(path, i))
		if rejection != nil {
			return nil, rejection
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func (a *anthropicReader) textBlock(text string) *block {
	return &block{kind: "text", text: text, sum: sumText(text), tokens: a.config.Count(text)}
}

func (a *anthropicReader) parseBlock(raw json.RawMessage, role, path string) (*block, *Rejection) {
	m, ok := objectMembers(raw)
	if !ok {
		return nil, refuse("%s: Input should be a valid dictionary", path)
	}
	kind, ok := m.text("type")
	if !ok {
		return nil, refuse("%s.type: Field required", path)
	}
	roles := rolesOf(kind)
	if roles == "" && !a.config.AllowUnknown && kind != "tool_reference" {
		return nil, refuse("%s: Input tag '%s' found using 'type' does not match any of the expected tags", path, kind)
	}
	if roles != "" && !strings.Contains(roles, role) {
		return nil, refuse("%s: `%s` blocks can only be in `%s` messages", strings.TrimSuffix(path, ".content"), kind, strings.Fields(roles)[0])
	}
	if known := memberNames(kind); known != nil && !a.config.AllowUnknown {
		if name := m.extra(known...); name != "" {
			return nil, refuse("%s.%s.%s: Extra inputs are not permitted", path, kind, name)
		}
	}
	b := &block{kind: kind, members: m, raw: raw}
	var rejection *Rejection
	if b.cache, rejection = parseCacheMarker(m["cache_control"], path+"."+kind); rejection != nil {
		return nil, rejection
	}
	if b.nested, rejection = nestedMarkers(b, path); rejection != nil {
		return nil, rejection
	}
	if rejection = a.parseBlockMembers(b, path); rejection != nil {
		return nil, rejection
	}
	b.sum = sumBlock(b)
	b.tokens = a.config.blockTokens(b)
	return b, nil
}

// parseBlockMembers reads the members that a block's type requires.
func (a *anthropicReader) parseBlockMembers(b *block, path string) *Rejection {
	missing := func(name string) *Rejection { return refuse("%s.%s.%s: Field required", path, b.kind, name) }
	var ok bool
	switch b.kind {
	case "text":
		if b.text, ok = b.members.text("text"); !ok {
			return missing("text")
		}
	case "thinking":
		if b.text, ok = b.members.text("thinking"); !ok {
			return missing("thinking")
		}
		if b.signature, ok = b.members.text("signature"); !ok {
			return missing("signature")
		}
	case "redacted_thinking":
		if b.signature, ok = b.members.text("data"); !ok {
			return missing("data")
		}
	case "tool_use":
		return b.parseToolUse(path)
	case "tool_result":
		if b.id, ok = b.members.text("tool_use_id"); !ok {
			return missing("tool_use_id")
		}
		return a.parseResultContent(b, path)
	case "image", "document":
		if !b.members.has("source") {
			return missing("source")
		}
	case "search_result":
		for _, name := range []string{"content", "source", "title"} {
			if !b.members.has(name) {
				return missing(name)
			}
		}
	case "container_upload":
		if !b.members.has("file_id") {
			return missing("file_id")
		}
	case "server_tool_use", "mcp_tool_use":
		b.id, _ = b.members.text("id")
	default:
		b.id, _ = b.members.text("tool_use_id")
	}
	return nil
}

func (b *block) parseToolUse(path string) *Rejection {
	const pattern = "String should match pattern '^[a-zA-Z0-9_-]+$'"
	var ok bool
	if b.id, ok = b.members.text("id"); !ok {
		return refuse("%s.tool_use.id: Field required", path)
	}
	if !matches(b.id, 256) {
		return refuse("%s.tool_use.id: %s", path, pattern)
	}
	if b.name, ok = b.members.text("name"); !ok {
		return refuse("%s.tool_use.name: Field required", path)
	}
	if !matches(b.name, 200) {
		return refuse("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'", path)
	}
	if _, ok = b.members["input"]; !ok {
		return refuse("%s.tool_use.input: Field required", path)
	}
	if firstByte(b.members["input"]) != '{' {
		return refuse("%s.tool_use.input: Input should be a valid dictionary", path)
	}
	return nil
}

func (a *anthropicReader) parseResultContent(b *block, path string) *Rejection {
	if !b.members.has("content") {
		return nil
	}
	if mark, ok := b.members["is_error"]; ok && firstByte(mark) != 't' && firstByte(mark) != 'f' && firstByte(mark) != 'n' {
		return refuse("%s.tool_result.is_error: Input should be a valid boolean", path)
	}
	inner, rejection := a.parseContent(b.members["content"], "user", path+".tool_result.content")
	if rejection != nil {
		return rejection
	}
	for i, part := range inner {
		switch part.kind {
		case "text", "image", "document", "search_result", "tool_reference", "browser_state":
		default:
			if rolesOf(part.kind) != "" || !a.config.AllowUnknown {
				return refuse("%s.tool_result.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'", path, i, part.kind)
			}
		}
	}
	b.inner = inner
	return nil
}

// nestedMarkers reads the cache markers on the parts of a block's content and of
// a document's source.
func nestedMarkers(b *block, path string) ([]*cacheMarker, *Rejection) {
	if b.kind == "tool_result" {
		return nil, nil
	}
	source, _ := objectMembers(b.members["source"])
	var nested []*cacheMarker
	for _, list := range []json.RawMessage{b.members["content"], source["content"]} {
		parts, _ := elements(list)
		for i, raw := range parts {
			part, _ := objectMembers(raw)
			marker, rejection := parseCacheMarker(part["cache_control"], at(path+".content", i))
			if rejection != nil {
				return nil, rejection
			}
			if marker != nil {
				nested = append(nested, marker)
			}
		}
	}
	return nested, nil
}

func parseCacheMarker(raw json.RawMessage, path string) (*cacheMarker, *Rejection) {
	if first := firstByte(raw); first == 0 || first == 'n' {
		return nil, nil
	}
	m, ok := objectMembers(raw)
	if !ok {
		return nil, refuse("%s.cache_control: Input should be a valid dictionary", path)
	}
	if name, _ := m.text("type"); name != "ephemeral" {
		return nil, refuse("%s.cache_control: Input tag '%s' found using 'type' does not match any of the expected tags: 'ephemeral'", path, name)
	}
	ttl, given := m.text("ttl")
	if given && ttl != "5m" && ttl != "1h" {
		return nil, refuse("%s.cache_control.ephemeral.ttl: Input should be '5m' or '1h'", path)
	}
	return &cacheMarker{hour: ttl == "1h"}, nil
}

const (
	messageTokens    = 3    // cost of a message beside its text
	largestPicture   = 1600 // tokens of the largest picture, and of an unreadable one
	pixelsPerToken   = 750
	bytesPerDocToken = 40 // of a PDF in base64
	bytesPerOpaque   = 6  // of encrypted or otherwise opaque content
)

// blockTokens estimates a block in o200k tokens.
func (c Config) blockTokens(b *block) int {
	switch b.kind {
	case "text":
		return c.Count(b.text)
	case "thinking":
		if b.text == "" {
			return len(b.signature) / bytesPerOpaque
		}
		return c.Count(b.text)
	case "redacted_thinking":
		return len(b.signature) / bytesPerOpaque
	case "tool_use":
		return c.Count(b.name) + c.Count(string(b.members["input"]))
	case "tool_result":
		sum := 0
		for _, part := range b.inner {
			sum += part.tokens
		}
		return sum
	case "image":
		return pictureTokens(base64Source(b.members["source"]))
	case "document":
		return c.documentTokens(b.members["source"])
	default:
		return c.opaqueTokens(b.raw)
	}
}

// opaqueTokens estimates a value that may hold encrypted parts.
func (c Config) opaqueTokens(raw json.RawMessage) int {
	if bytes.Contains(raw, []byte("encrypted")) || len(raw) > 1<<16 {
		return len(raw) / bytesPerOpaque
	}
	return c.Count(string(raw))
}

func (c Config) documentTokens(source json.RawMessage) int {
	m, _ := objectMembers(source)
	data, _ := m.text("data")
	if kind, _ := m.text("type"); kind == "text" {
		return c.Count(data)
	}
	return largestPicture + len(data)/bytesPerDocToken
}

// base64Source returns the data of a source of type base64; "" for a URL or file.
func base64Source(source json.RawMessage) string {
	m, _ := objectMembers(source)
	data, _ := m.text("data")
	return data
}

// pictureTokens is the cost of a picture by its size, or largestPicture if the size is unreadable.
func pictureTokens(data string) int {
	decoder := base64.NewDecoder(base64.StdEncoding, bytes.NewReader([]byte(data)))
	size, _, err := image.DecodeConfig(decoder)
	if err != nil {
		return largestPicture
	}
	return max(1, min(largestPicture, size.Width*size.Height/pixelsPerToken))
}

// openaiMediaTokens estimates an image_url, input_image, file or input_audio.
func openaiMediaTokens(raw json.RawMessage) int {
	source, ok := stringValue(raw)
	if !ok {
		m, _ := objectMembers(raw)
		source, _ = m.text("url")
	}
	if _, data, isData := strings.Cut(source, ";base64,"); isData {
		return pictureTokens(data)
	}
	return largestPicture
}
