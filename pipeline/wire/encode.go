package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

var (
	// ErrEmpty means that a changed message has no content left.
	ErrEmpty = errors.New("nothing is left of the message")

	// ErrFixed means that a block was changed that must be sent unchanged or left out.
	ErrFixed = errors.New("the block must not be changed")
)

// Origins returns, for each block of a changed message, the index of that block in the original message; -1
// for a new one. Blocks may be removed but not reordered.
func Origins(sent, blocks []conversation.Block) []int {
	origins, next := make([]int, len(blocks)), 0
	for i := range blocks {
		origins[i] = -1
		if len(sent) == len(blocks) && sent[i].Kind == blocks[i].Kind && sent[i].ID == blocks[i].ID {
			origins[i], next = i, i+1
			continue
		}
		for j := next; j < len(sent); j++ {
			if comesFrom(&blocks[i], &sent[j]) {
				origins[i], next = j, j+1
				break
			}
		}
	}
	return origins
}

// comesFrom reports whether a block is an original one, possibly with different text.
func comesFrom(block, sent *conversation.Block) bool {
	if block.Kind != sent.Kind || block.ID != sent.ID {
		return false
	}
	if block.Raw != nil || sent.Raw == nil {
		return bytes.Equal(block.Raw, sent.Raw)
	}
	return block.ID != ""
}

// IsPlainText reports whether a message's content is only text: a string, or an array of parts of the given
// types whose only members are type, text, and those in more.
func IsPlainText(content json.RawMessage, types []string, more ...string) bool {
	if _, ok := String(content); ok {
		return true
	}
	if len(content) == 0 || content[0] != '[' {
		return false
	}
	for _, part := range Elements(content) {
		if !slices.Contains(types, Text(part, "type")) {
			return false
		}
		for name := range Members(part) {
			if member := string(name); member != "type" && member != "text" && !slices.Contains(more, member) {
				return false
			}
		}
	}
	return true
}

// TextsOf returns a string member of each object in an array, in order.
func TextsOf(array json.RawMessage, member string) []string {
	var texts []string
	for _, element := range Elements(array) {
		texts = append(texts, Text(element, member))
	}
	return texts
}

// Sorted returns a JSON value with its keys in order and without white space, so that a response reads the same
// in whatever order a client sends its members.
func Sorted(raw json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(raw)
	}
	encoded, err := EncodeBody(value)
	if err != nil {
		return string(raw)
	}
	return string(encoded)
}

// DecodedSize returns the decoded size of a base64 text, in bytes.
func DecodedSize(base64 string) int {
	base64 = strings.TrimRight(base64, "=")
	return len(base64) * 3 / 4
}

// DataURL returns the MIME type of a data URL and the size of its content in bytes; otherwise and 0 for any
// other URL.
func DataURL(url, otherwise string) (mediaType string, size int) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return otherwise, 0
	}
	head, data, _ := strings.Cut(rest, ",")
	mediaType, _, _ = strings.Cut(head, ";")
	if mediaType == "" {
		mediaType = otherwise
	}
	if strings.HasSuffix(head, ";base64") {
		return mediaType, DecodedSize(data)
	}
	return mediaType, len(data)
}
