package semanticcache

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// speech is the content of a request: system messages and one of the user.
type speech struct {
	messages []json.RawMessage // those of the system as they came; nil at the place of the user's
	user     int               // number of the user's messages
	blocks   []json.RawMessage // of the user's message
	texts    []string          // the user's text, one for each block of text
}

// readSpeech reads the messages of a body. reason says why the request must bypass the cache, or is
// "".
func readSpeech(rules wire.Reuse, raw json.RawMessage) (said speech, reason string) {
	if raw[0] == '"' { // Responses accepts the user's text alone
		raw = append(append([]byte(`[{"role":"user","content":`), raw...), `}]`...)
	}
	if json.Unmarshal(raw, &said.messages) != nil {
		return said, ReasonForeign
	}
	for i, message := range said.messages {
		read, err := readObject(message)
		if err != nil {
			return said, ReasonAmbiguous
		}
		if !isPlainMessage(rules, read) {
			return said, ReasonHistory
		}
		switch role, _ := read.text("role"); role {
		case "system", "developer":
			if said.user > 0 || !rules.SystemInList {
				return said, ReasonHistory
			}
		case "user":
			if said.user++; said.user > 1 {
				return said, ReasonHistory
			}
			said.messages[i] = nil
			if reason := said.readUser(rules, read["content"]); reason != "" {
				return said, reason
			}
		default:
			return said, ReasonHistory
		}
	}
	return said, ""
}

// isPlainMessage reports whether a message has only a role and content.
func isPlainMessage(rules wire.Reuse, message object) bool {
	for name, value := range message {
		switch name {
		case "role", "content", "cache_control":
		case "type":
			if kind, _ := message.text("type"); kind == "" || kind != rules.ItemType {
				return false
			}
		default:
			if string(value) != "null" {
				return false // a name, a call, an id
			}
		}
	}
	return len(message["content"]) > 0
}

// readUser reads the content of the user's message.
func (s *speech) readUser(rules wire.Reuse, raw json.RawMessage) string {
	if raw[0] == '"' {
		raw = append(append([]byte(`[{"type":"`+rules.TextType+`","text":`), raw...), `}]`...)
	}
	if json.Unmarshal(raw, &s.blocks) != nil || len(s.blocks) == 0 {
		return ReasonForeign
	}
	for _, block := range s.blocks {
		read, err := readObject(block)
		if err != nil {
			return ReasonAmbiguous
		}
		switch kind, _ := read.text("type"); {
		case kind == "text" || kind == "input_text":
			text, ok := read.text("text")
			if members := len(read); !ok || !isPlain(read["text"], text) || members > 3 || members == 3 && read["cache_control"] == nil {
				return ReasonForeign // citations and unknown blocks
			}
			s.texts = append(s.texts, text)
		case isInlineImage(kind, read):
		default:
			return ReasonForeign
		}
	}
	if len(s.texts) == 0 {
		return ReasonForeign
	}
	return ""
}

// isInlineImage reports whether a block is an image whose bytes are in the body. The image behind a
// URL or a file's id can change.
func isInlineImage(kind string, block object) bool {
	switch kind {
	case "image":
		source, err := readObject(block["source"])
		if err != nil {
			return false
		}
		place, _ := source.text("type")
		return place == "base64"
	case "image_url":
		image, err := readObject(block["image_url"])
		if err != nil {
			return false
		}
		url, _ := image.text("url")
		return strings.HasPrefix(url, "data:")
	case "input_image":
		url, _ := block.text("image_url")
		return strings.HasPrefix(url, "data:")
	default:
		return false
	}
}

// canonical returns the canonical content: around is everything but the user's message, whole that
// message.
func (s *speech) canonical() (around, whole []byte, err error) {
	for _, message := range s.messages {
		if message == nil {
			around = append(around, "user"...)
			continue
		}
		if around, err = appendCanonical(around, message); err != nil {
			return nil, nil, err
		}
	}
	for _, block := range s.blocks {
		if whole, err = appendCanonical(whole, block); err != nil {
			return nil, nil, err
		}
	}
	return around, whole, nil
}
