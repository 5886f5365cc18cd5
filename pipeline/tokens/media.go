package tokens

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"

	"palimpsest/pipeline/conversation"
)

// The cost of media in o200k tokens. A prompt's sum is later scaled to the model's own tokens. Anthropic
// documents the rule for images, one of Claude's tokens for 750 pixels, 1600 at most
// (https://docs.claude.com/en/docs/build-with-claude/vision); OpenAI's tiles cost two thirds of that or more,
// up to the same. The figures for documents and sounds are rules of thumb: a PDF page has some 50 KB and is
// read as text and as an image.
const (
	imageTokens   = 1203 // of the largest image, and of one of unknown size: 1600 of Claude's
	imageEdge     = 1568 // longer edges are scaled down to so many pixels
	pixelsByToken = 750 * tokensPerO200kClaude
	imageBytes    = 133 // per token, for images with unreadable pixels

	documentTokens = 1203 // in addition to the tokens from its size
	documentBytes  = 40   // per token
	soundBytes     = 2000 // per token: a tenth of a second
	textBytes      = 4    // per token
)

// headerBytes is how much of a base64 image is searched for its dimensions.
const headerBytes = 256 << 10

// base64From is the length from which a string of only base64 characters is a payload instead of text. Names,
// ids and hashes are shorter.
const base64From = 256

// attachment estimates the tokens of media from their type and size. Texts in them, as in a text document or
// a search result, are counted.
func (t *tally) attachment(media *conversation.Attachment) int {
	sum, text, found := 0, 0, false
	for values := (scanner{raw: media.Raw}); ; {
		token, kind := values.next()
		if kind == ended {
			break
		}
		if kind != stringValue {
			continue
		}
		if file, is := fileOf(values.name, token, media.Type); is {
			sum, found = sum+file.tokens(media.Type), true
		} else if isReadable(values.name) {
			text += t.text(decoded(token))
		}
	}
	switch {
	case found || text > 0:
		return sum + text
	case mediumOf(media.Type) == unknownMedium:
		return t.json(media.Raw)
	default:
		return payload{size: media.Size}.tokens(media.Type)
	}
}

// fileOf returns the file in a member of an attachment. The data of an image, a sound or a PDF are a file
// regardless of their length.
func fileOf(name, quoted []byte, mediaType string) (payload, bool) {
	if file, is := payloadOf(quoted); is {
		return file, true
	}
	medium := mediumOf(mediaType)
	if string(name) != "data" && string(name) != "file_data" || medium == unknownMedium || medium == plainText {
		return payload{}, false
	}
	return newPayload("", bytes.Trim(quoted, `"`)), true
}

// isReadable reports whether a model reads a member of an attachment.
func isReadable(name []byte) bool {
	switch string(name) {
	case "text", "data", "content", "context", "title", "file_data":
		return true
	}
	return false
}

// payload is a file in base64.
type payload struct {
	mediaType string // from a data URL
	encoded   []byte // may hold JSON escapes
	size      int    // bytes after decoding
}

func newPayload(mediaType string, encoded []byte) payload {
	return payload{mediaType: mediaType, encoded: encoded, size: base64.StdEncoding.DecodedLen(len(encoded))}
}

// payloadOf returns the file in a quoted string: a data URL, or only base64.
func payloadOf(quoted []byte) (payload, bool) {
	content := bytes.Trim(quoted, `"`)
	if url, is := bytes.CutPrefix(content, []byte("data:")); is {
		head, data, found := bytes.Cut(url, []byte{','})
		if mediaType, is := bytes.CutSuffix(head, []byte(";base64")); found && is {
			return newPayload(string(mediaType), data), true
		}
		return payload{}, false
	}
	if len(content) < base64From || !isBase64(content) {
		return payload{}, false
	}
	return newPayload("", content), true
}

// isBase64 reports whether a JSON string has only base64 characters, of either alphabet, possibly in lines.
func isBase64(content []byte) bool {
	for _, b := range content {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		case b == '+', b == '/', b == '-', b == '_', b == '=', b == '\\':
		default:
			return false
		}
	}
	return true
}

// tokens estimates the tokens of a file. The file's own media type takes precedence over the given one.
func (p payload) tokens(mediaType string) int {
	if p.mediaType != "" {
		mediaType = p.mediaType
	}
	switch mediumOf(mediaType) {
	case picture:
		return p.imageTokens()
	case document:
		return documentTokens + p.size/documentBytes
	case sound:
		return p.size / soundBytes
	case plainText:
		return p.size / textBytes
	default:
		return 0 // a payload that no model reads
	}
}

func (p payload) imageTokens() int {
	if pixels, err := p.pixels(); err == nil && pixels.Width > 0 && pixels.Height > 0 {
		scale := min(1, imageEdge/float64(max(pixels.Width, pixels.Height)))
		area := float64(pixels.Width) * scale * float64(pixels.Height) * scale
		return max(1, min(imageTokens, int(area/pixelsByToken)))
	}
	if p.size == 0 {
		return imageTokens
	}
	return max(1, min(imageTokens, p.size/imageBytes))
}

// pixels returns the width and height of a PNG, JPEG or GIF.
func (p payload) pixels() (image.Config, error) {
	head := p.encoded[:min(len(p.encoded), headerBytes)]
	file := base64.NewDecoder(base64.StdEncoding, bytes.NewReader(bytes.ReplaceAll(head, []byte{'\\'}, nil)))
	switch {
	case bytes.HasPrefix(p.encoded, []byte("iVBOR")):
		return png.DecodeConfig(file)
	case bytes.HasPrefix(p.encoded, []byte("R0lGOD")):
		return gif.DecodeConfig(file)
	default:
		return jpeg.DecodeConfig(file)
	}
}

// medium is the kind of a file for a model.
type medium int

const (
	unknownMedium medium = iota
	picture
	document
	sound
	plainText
)

// mediumOf returns the medium of a MIME type or a block's type.
func mediumOf(mediaType string) medium {
	switch {
	case strings.Contains(mediaType, "image"), strings.Contains(mediaType, "screenshot"):
		return picture
	case strings.Contains(mediaType, "audio"):
		return sound
	case strings.Contains(mediaType, "document"), strings.Contains(mediaType, "file"), strings.HasPrefix(mediaType, "application/"):
		return document
	case strings.HasPrefix(mediaType, "text/"):
		return plainText
	default:
		return unknownMedium
	}
}
