package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

const marker = "cache_control"

// mark returns a message with one marker on its last block that accepts one.
func mark(raw json.RawMessage, ttl string) json.RawMessage {
	content := wire.Get(raw, "content")
	if len(content) == 0 || ttl == "" && !bytes.Contains(raw, []byte(marker)) {
		return raw
	}
	if content[0] == '"' {
		return markText(raw, content, ttl)
	}
	last, found := -1, 0
	for i, block := range wire.Elements(content) {
		if mayCarry(block) {
			last = i
		}
		found += len(blockMarkers(nil, block))
	}
	if ttl == "" && found == 0 || ttl != "" && last < 0 {
		return raw
	}
	marked := wire.Replace(content, func(i int, block json.RawMessage) json.RawMessage {
		if i != last || ttl == "" {
			return unmarked(block)
		}
		own := wire.Get(block, marker)
		if found == 1 && len(own) > 0 && timeToLive(own) == ttl {
			return block
		}
		return wire.Set(unmarked(block), marker, written(ttl))
	})
	if len(marked) == len(content) && &marked[0] == &content[0] {
		return raw
	}
	return wire.Set(raw, "content", marked)
}

// markText marks a message whose content is a string.
func markText(raw, content json.RawMessage, ttl string) json.RawMessage {
	if text, ok := wire.String(content); !ok || ttl == "" || strings.TrimSpace(text) == "" {
		return raw
	}
	blocks := append([]byte(`[{"type":"text","text":`), content...)
	blocks = append(append(blocks, `,"`+marker+`":`...), written(ttl)...)
	return wire.Set(raw, "content", append(blocks, "}]"...))
}

// mayCarry reports whether a block accepts a marker.
func mayCarry(block json.RawMessage) bool {
	switch wire.Text(block, "type") {
	case "text":
		return strings.TrimSpace(wire.Text(block, "text")) != ""
	case "image", "document", "search_result", "tool_use", "tool_result":
		return true
	}
	return false
}

// unmarked returns a block without markers, including those on the parts of its content.
func unmarked(block json.RawMessage) json.RawMessage {
	if !bytes.Contains(block, []byte(marker)) {
		return block
	}
	block = unmarkedParts(wire.Delete(block, marker))
	source := wire.Get(block, "source")
	if inner := unmarkedParts(source); len(inner) != len(source) {
		block = wire.Set(block, "source", inner)
	}
	return block
}

// unmarkedParts returns an object without the markers on the parts of its content.
func unmarkedParts(object json.RawMessage) json.RawMessage {
	content := wire.Get(object, "content")
	inner := wire.Replace(content, func(_ int, part json.RawMessage) json.RawMessage {
		return wire.Delete(part, marker)
	})
	if len(inner) == len(content) {
		return object
	}
	return wire.Set(object, "content", inner)
}

// blockMarkers appends the times to live of the markers on a block and inside it.
func blockMarkers(markers []string, block json.RawMessage) []string {
	if !bytes.Contains(block, []byte(marker)) {
		return markers
	}
	// The parts of results and search results, and those of a document's source.
	for _, object := range []json.RawMessage{block, wire.Get(block, "source")} {
		for _, part := range wire.Elements(wire.Get(object, "content")) {
			markers = appendMarker(markers, wire.Get(part, marker))
		}
	}
	return appendMarker(markers, wire.Get(block, marker))
}

// appendMarker appends the time to live of a marker, if there is one.
func appendMarker(markers []string, raw json.RawMessage) []string {
	if wire.IsNull(raw) {
		return markers
	}
	return append(markers, timeToLive(raw))
}

func timeToLive(raw json.RawMessage) string {
	if ttl := wire.Text(raw, "ttl"); ttl != "" {
		return ttl
	}
	return "5m"
}

// written returns a marker in our spelling.
func written(ttl string) json.RawMessage {
	if ttl == "5m" {
		return json.RawMessage(`{"type":"ephemeral"}`)
	}
	return append(wire.AppendQuote([]byte(`{"type":"ephemeral","ttl":`), ttl), '}')
}
