package providerdouble

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// responsesItem is one item of a Responses input.
type responsesItem struct {
	kind    string
	role    string // of messages
	id      string
	callID  string
	text    string
	sealed  string // encrypted_content
	members members
	sum     [sha256.Size]byte
	tokens  int
}

// isCall reports whether a client answers the item with an output.
func (i *responsesItem) isCall() bool {
	return slices.Contains([]string{"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"}, i.kind)
}

// isOutput reports whether the item answers a call.
func (i *responsesItem) isOutput() bool { return strings.HasSuffix(i.kind, "_call_output") }

// isReasoning reports whether the item is reasoning, or refers to it.
func (i *responsesItem) isReasoning() bool {
	return i.kind == "reasoning" || i.kind == "item_reference" && strings.HasPrefix(i.id, "rs_")
}

// speech is how refusals name a kind of call.
func speech(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// itemKinds are the documented types of items.
func itemKinds() []string {
	return []string{
		"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "computer_call",
		"computer_call_output", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output",
		"apply_patch_call", "apply_patch_call_output", "reasoning", "compaction", "compaction_trigger", "item_reference",
		"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call", "web_search_call", "file_search_call",
		"code_interpreter_call", "image_generation_call", "tool_search_call", "tool_search_output", "additional_tools",
		"configuration_update", "program", "program_output", "agent_message",
	}
}

// parseItem reads one item; path names it in refusals.
func (o *responsesReader) parseItem(raw json.RawMessage, path string) (*responsesItem, *Rejection) {
	key := sha256.Sum256(raw)
	if known, ok := o.items.find(key); ok {
		return known, nil
	}
	m, ok := objectMembers(raw)
	if !ok {
		return nil, wrongType(path, "an object", firstByte(raw))
	}
	parsed := &responsesItem{members: m, sum: sha256.Sum256(compact(raw)), tokens: messageTokens}
	parsed.kind, ok = m.text("type")
	switch {
	case !ok && m.has("role"):
		parsed.kind = "message"
	case !ok:
		return nil, missingParameter(path + ".type")
	case !slices.Contains(itemKinds(), parsed.kind) && !o.config.AllowUnknown:
		return nil, wrongValue(path+".type", parsed.kind, itemKinds()...)
	}
	parsed.id, _ = m.text("id")
	if prefix := idPrefix(parsed.kind); parsed.id != "" && !strings.HasPrefix(parsed.id, prefix) {
		return nil, refuse("Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", path, parsed.id, prefix).at(path + ".id").coded("invalid_value")
	}
	if rejection := o.parseItemMembers(parsed, path); rejection != nil {
		return nil, rejection
	}
	o.items.keep(key, parsed)
	return parsed, nil
}

func idPrefix(kind string) string {
	switch kind {
	case "message":
		return "msg"
	case "function_call":
		return "fc"
	case "reasoning":
		return "rs"
	default:
		return ""
	}
}

// parseItemMembers reads the members that an item's type requires.
func (o *responsesReader) parseItemMembers(parsed *responsesItem, path string) *Rejection {
	m := parsed.members
	switch parsed.kind {
	case "message":
		return o.parseItemMessage(parsed, path)
	case "function_call":
		return o.parseItemStrings(parsed, path, "call_id", "name", "arguments")
	case "custom_tool_call":
		return o.parseItemStrings(parsed, path, "call_id", "name", "input")
	case "reasoning":
		if _, ok := elements(m["summary"]); !ok {
			return missingParameter(path + ".summary")
		}
		parsed.sealed, _ = m.text("encrypted_content")
		parsed.tokens = len(parsed.sealed)/bytesPerOpaque + o.config.Count(string(m["summary"]))
		return nil
	case "compaction":
		var ok bool
		if parsed.sealed, ok = m.text("encrypted_content"); !ok {
			return missingParameter(path + ".encrypted_content")
		}
		parsed.tokens = len(parsed.sealed) / bytesPerOpaque
		return nil
	case "agent_message":
		return o.parseAgentMessage(parsed, path)
	case "item_reference":
		if parsed.id == "" {
			return missingParameter(path + ".id")
		}
		return nil
	}
	parsed.callID, _ = m.text("call_id")
	if parsed.kind == "local_shell_call_output" && parsed.callID == "" {
		parsed.callID = parsed.id // the call's, by another name
		parsed.id = ""
	}
	if (parsed.isCall() || parsed.isOutput()) && parsed.callID == "" {
		return missingParameter(path + ".call_id")
	}
	if !parsed.isOutput() {
		parsed.tokens += o.config.opaqueTokens(encode(map[string]json.RawMessage(m)))
		return nil
	}
	return o.parseItemOutput(parsed, path)
}

// parseItemStrings reads the string members, the call's id first.
func (o *responsesReader) parseItemStrings(parsed *responsesItem, path string, names ...string) *Rejection {
	for _, name := range names {
		if !parsed.members.has(name) {
			return missingParameter(path + "." + name)
		}
		text, ok := parsed.members.text(name)
		if !ok {
			return wrongType(path+"."+name, "a string", firstByte(parsed.members[name]))
		}
		switch name {
		case "call_id":
			parsed.callID = text
			if len(text) > 64 {
				return tooLong(path+".call_id", 64, len(text))
			}
		case "name":
			if !matches(text, 128) {
				return wrongPattern(path + ".name")
			}
			fallthrough
		default:
			parsed.tokens += o.config.Count(text)
		}
	}
	return nil
}

func (o *responsesReader) parseItemOutput(parsed *responsesItem, path string) *Rejection {
	path += ".output"
	if !parsed.members.has("output") {
		return missingParameter(path)
	}
	output := parsed.members["output"]
	if text, ok := stringValue(output); ok {
		parsed.text = text
		parsed.tokens += o.config.Count(text)
		return nil
	}
	parts, ok := elements(output)
	if ok && parsed.kind == "shell_call_output" {
		return o.parseShellOutput(parsed, parts, path)
	}
	if !ok {
		if parsed.kind == "function_call_output" || parsed.kind == "custom_tool_call_output" {
			return wrongType(path, "one of a string or array of objects", firstByte(output))
		}
		parsed.tokens += o.config.opaqueTokens(output)
		return nil
	}
	return o.parseParts(parsed, parts, path, []string{"input_text", "input_image", "input_file"})
}

// parseShellOutput reads the output of shell commands.
func (o *responsesReader) parseShellOutput(parsed *responsesItem, parts []json.RawMessage, path string) *Rejection {
	for i, raw := range parts {
		m, ok := objectMembers(raw)
		if !ok {
			return wrongType(item(path, i), "an object", firstByte(raw))
		}
		for _, name := range []string{"stdout", "stderr", "outcome"} {
			if !m.has(name) {
				return missingParameter(item(path, i) + "." + name)
			}
		}
		for _, name := range []string{"stdout", "stderr"} {
			text, isText := m.text(name)
			if !isText {
				return wrongType(item(path, i)+"."+name, "a string", firstByte(m[name]))
			}
			parsed.text += text
			parsed.tokens += o.config.Count(text)
		}
	}
	return nil
}

func (o *responsesReader) parseItemMessage(parsed *responsesItem, path string) *Rejection {
	m := parsed.members
	var ok bool
	if parsed.role, ok = m.text("role"); !ok {
		return missingParameter(path + ".role")
	}
	roles := []string{"assistant", "system", "developer", "user"}
	if !slices.Contains(roles, parsed.role) {
		return wrongValue(path+".role", parsed.role, roles...)
	}
	if parsed.text, ok = m.text("content"); ok {
		parsed.tokens += o.config.Count(parsed.text)
		return nil
	}
	if !m.has("content") {
		return missingParameter(path + ".content")
	}
	parts, ok := elements(m["content"])
	if !ok {
		return wrongType(path+".content", "one of a string or array of objects", firstByte(m["content"]))
	}
	allowed := []string{"input_text", "input_image", "input_file", "input_audio"}
	if parsed.role == "assistant" {
		allowed = []string{"output_text", "refusal"}
	}
	return o.parseParts(parsed, parts, path+".content", allowed)
}

// parseAgentMessage reads a message from one agent of Codex to another. OpenAI doesn't document this item,
// but Codex 0.171 sends it.
func (o *responsesReader) parseAgentMessage(parsed *responsesItem, path string) *Rejection {
	for _, name := range []string{"author", "recipient"} {
		if _, ok := parsed.members.text(name); !ok {
			return missingParameter(path + "." + name)
		}
	}
	parts, ok := elements(parsed.members["content"])
	if !ok {
		return missingParameter(path + ".content")
	}
	return o.parseParts(parsed, parts, path+".content", []string{"input_text", "encrypted_content"})
}

func (o *responsesReader) parseParts(parsed *responsesItem, parts []json.RawMessage, path string, allowed []string) *Rejection {
	for i, raw := range parts {
		m, ok := objectMembers(raw)
		if !ok {
			return wrongType(item(path, i), "an object", firstByte(raw))
		}
		kind, ok := m.text("type")
		if !ok {
			return missingParameter(item(path, i) + ".type")
		}
		if !slices.Contains(allowed, kind) && !o.config.AllowUnknown {
			return wrongValue(item(path, i), kind, allowed...)
		}
		switch kind {
		case "input_text", "output_text", "refusal":
			name := "text"
			if kind == "refusal" {
				name = kind
			}
			text, isText := m.text(name)
			if !isText {
				return missingParameter(item(path, i) + "." + name)
			}
			parsed.text += text
			parsed.tokens += o.config.Count(text)
		case "encrypted_content":
			sealed, _ := m.text("encrypted_content")
			parsed.text += sealed // the double does not seal it
			parsed.tokens += len(sealed) / bytesPerOpaque
		default:
			parsed.tokens += openaiMediaTokens(m["image_url"])
		}
	}
	return nil
}

// past continues a chain behind an item. Reasoning itself is not part of it.
func (c chain) past(i *responsesItem) chain {
	if i.kind == "reasoning" {
		return c
	}
	return c.with(i.kind, i.sum)
}

// head starts the chain of a request: its instructions and tools.
func (r *responsesRequest) head() chain {
	c := chain{}.with("instructions", sumText(r.instructions))
	for _, t := range r.tools {
		c = c.with("tool", t.sum)
	}
	return c
}

// seal returns the encrypted content of reasoning at the end of the request, bound to this place if the model
// leaves out displaced reasoning.
func (r *responsesRequest) seal(d *Double, text string) string {
	if !r.model.DropsReasoning {
		return d.Redact(text)
	}
	prefix := r.head()
	for _, i := range r.items {
		prefix = prefix.past(i)
	}
	return d.sealBound(text, prefix)
}

// dropReasoning marks reasoning whose prefix has changed: it is left out of the prompt, and the answer says
// so.
func (r *responsesRequest) dropReasoning(s *Signer) {
	if !r.model.DropsReasoning {
		return
	}
	prefix := r.head()
	for n, i := range r.items {
		if i.kind == "reasoning" && s.isMisplaced(i.sealed, prefix) {
			r.dropped = append(r.dropped, transformation{Type: "reasoning_dropped", Path: item("input", n-r.held), Reason: "prefix_mismatch"})
			r.skip[i] = true
		}
		prefix = prefix.past(i)
	}
}

// sealBound seals reasoning behind a prefix.
func (s *Signer) sealBound(text string, prefix chain) string {
	sum := sha256.Sum256([]byte(text))
	signed := append([]byte{boundSignature}, prefix[:chainSize]...)
	signed = append(signed, sum[:chainSize]...)
	return base64.StdEncoding.EncodeToString(append(signed, s.mac("reasoning", prefix[:chainSize], string(sum[:chainSize]))...))
}

// openBound returns the prefix that reasoning was sealed behind; ok is false for data of any other origin
// than sealBound.
func (s *Signer) openBound(data string) (prefix []byte, ok bool) {
	signed, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(signed) != 1+2*chainSize+sha256.Size || signed[0] != boundSignature {
		return nil, false
	}
	prefix, sum, mac := signed[1:1+chainSize], signed[1+chainSize:1+2*chainSize], signed[1+2*chainSize:]
	return prefix, hmac.Equal(mac, s.mac("reasoning", prefix, string(sum)))
}

func (s *Signer) isMisplaced(data string, prefix chain) bool {
	sealed, ok := s.openBound(data)
	return ok && !bytes.Equal(sealed, prefix[:chainSize])
}

// ItemBinding seals the reasoning of one conversation in Responses as it grows,
// each item bound to everything before it, as the newest models do.
type ItemBinding struct {
	signer *Signer
	reader *responsesReader
	chain  chain
}

// BindItems starts the binding of a conversation. head is a Responses body whose
// instructions and tools count; its input does not.
func (d *Double) BindItems(head []byte) (*ItemBinding, error) {
	m, ok := document(head)
	if !ok {
		return nil, brokenJSON()
	}
	r := &responsesRequest{members: m}
	r.instructions, _ = m.text("instructions")
	var rejection *Rejection
	if r.tools, rejection = d.config.parseFunctions(m["tools"], false); rejection != nil {
		return nil, rejection
	}
	return &ItemBinding{signer: d.Signer, reader: &d.responses, chain: r.head()}, nil
}

// Add appends one item to the conversation. Reasoning may be left out; role is the item's own.
func (b *ItemBinding) Add(_ string, content json.RawMessage) error {
	parsed, rejection := b.reader.parseItem(content, "input")
	if rejection != nil {
		return rejection
	}
	b.chain = b.chain.past(parsed)
	return nil
}

// Sign returns the encrypted content of reasoning at the end of the items so far.
func (b *ItemBinding) Sign(text string) string { return b.signer.sealBound(text, b.chain) }

// Redact is Sign, because reasoning is always sealed.
func (b *ItemBinding) Redact(text string) string { return b.Sign(text) }
