package gemini

import (
	"encoding/json"
	"strconv"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/wire"
)

// Parse reads one content.
func (Codec) Parse(raw json.RawMessage) (conversation.Message, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return conversation.Message{}, &wire.Invalid{Message: "expected a content: an object with role and parts"}
	}
	message := conversation.Message{Raw: raw}
	switch wire.Text(raw, "role") {
	case "user", "":
		message.Role = conversation.User
	case "model":
		message.Role = conversation.Assistant
	case "function":
		message.Role = conversation.Tool
	default:
		message.Role, message.Traits = conversation.User, conversation.IsPinned
		message.Blocks = []conversation.Block{{Kind: conversation.Opaque, Name: "content", Raw: raw}}
		return message, nil
	}
	ids := ordinals{}
	for _, part := range wire.Elements(wire.Get(raw, "parts")) {
		read := readPart(part)
		if read.isSigned && read.kind != thought {
			message.Traits |= conversation.HasOpaque
		}
		message.Blocks = append(message.Blocks, read.block(ids))
	}
	return message, nil
}

// kind is the kind of a part.
type kind int

// The kinds of parts.
const (
	other kind = iota
	text
	thought
	call
	response
	inlineData
	fileData
)

// part holds the members of a part that the proxy reads.
type part struct {
	raw      json.RawMessage
	kind     kind
	name     string          // of the member that holds the data
	data     json.RawMessage // value of that member
	isSigned bool            // it has a thoughtSignature, which belongs to exactly these bytes
}

// readPart reads a part. One of its members is its data.
func readPart(raw json.RawMessage) part {
	read, isThought := part{raw: raw}, false
	for name, value := range wire.Members(raw) {
		if wire.IsNull(value) {
			continue
		}
		found := other
		switch string(name) {
		case "text":
			found = text
		case "functionCall", "function_call":
			found = call
		case "functionResponse", "function_response":
			found = response
		case "inlineData", "inline_data":
			found = inlineData
		case "fileData", "file_data":
			found = fileData
		case "thought":
			isThought = string(value) == "true"
			continue
		case "thoughtSignature", "thought_signature":
			read.isSigned = true
			continue
		case "videoMetadata", "video_metadata", "mediaResolution", "media_resolution", "partMetadata", "part_metadata":
			continue
		}
		if found != other || read.name == "" {
			read.kind, read.name, read.data = found, string(name), value
		}
	}
	if isThought && read.kind == text {
		read.kind = thought
	}
	return read
}

// block returns a part as a block.
func (p part) block(ids ordinals) conversation.Block {
	block := conversation.Block{Raw: p.raw}
	switch p.kind {
	case text, thought:
		block.Kind = conversation.Text
		if p.kind == thought {
			block.Kind = conversation.Thinking
		}
		block.Text, _ = wire.String(p.data)
	case call:
		block.Kind, block.Name = conversation.ToolCall, wire.Text(p.data, "name")
		block.ID = ids.of("call", block.Name, wire.Text(p.data, "id"))
		block.Text = string(wire.Get(p.data, "args"))
	case response:
		block.Kind = conversation.ToolResult
		name := wire.Text(p.data, "name")
		block.ID = ids.of("response", name, wire.Text(p.data, "id"))
		output := outputOf(wire.Get(p.data, "response"))
		block.Text, block.IsError = output.text, output.member == failure
		for _, raw := range wire.Elements(wire.Get(p.data, "parts")) {
			inner := readPart(raw)
			block.Media = append(block.Media, inner.attachment())
		}
	case inlineData, fileData:
		block.Kind = conversation.Media
		block.Media = []conversation.Attachment{p.attachment()}
	default:
		block.Kind, block.Name = conversation.Opaque, p.name
	}
	return block
}

// attachment describes a part with data.
func (p part) attachment() conversation.Attachment {
	found := conversation.Attachment{Type: p.name, Raw: p.raw}
	if mime, ok := wire.String(either(p.data, "mimeType", "mime_type")); ok && mime != "" {
		found.Type = mime
	}
	if p.kind == inlineData {
		found.Size = wire.DecodedSize(wire.Text(p.data, "data"))
	}
	return found
}

// ordinals counts the calls and the responses of a content by the tool's name.
type ordinals map[string]int

// clientMade matches the end of an id that Gemini CLI gives to the response of a call without an id: the time in
// milliseconds and a number.
var clientMade = expression.New(`[-_]\d{13}[-_][0-9a-z]+$`)

// of returns the id that joins a call and its response: the sent one, or otherwise the tool's name with its
// place among the calls of this tool, because Google joins parallel calls without ids by their order.
func (o ordinals) of(side, name, id string) string {
	id = strings.TrimPrefix(id, name+"__") // by Gemini CLI 0.61, on one side
	place := o[side+name]
	o[side+name]++
	if id != "" && !clientMade.Compiled().MatchString(id) {
		return id
	}
	return name + "#" + strconv.Itoa(place)
}

// failure is the member of a response that reports an error.
const failure = "error"

// output is the text of a tool's response.
type output struct {
	member string // that holds the text; "" if the whole response is the text
	text   string
}

// outputOf returns the text of a response: its only member if that is a string, which clients name output,
// result, content or error; otherwise the response as JSON.
func outputOf(response json.RawMessage) output {
	found, members := output{}, 0
	for name, value := range wire.Members(response) {
		members++
		if said, ok := wire.String(value); ok {
			found = output{member: string(name), text: said}
		}
	}
	if members != 1 || found.member == "" {
		return output{text: wire.Sorted(response)}
	}
	return found
}
