package providerdouble

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // sizes of pictures
	_ "image/png"  // sizes of pictures
	"strings"
)

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
