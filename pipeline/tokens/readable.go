package tokens

import (
	"encoding/json"
	"strings"
)

// json estimates the tokens of a JSON value as a model reads it: with decoded strings, without white space
// around tokens and without cache markers. Payloads are estimated by their kind and length.
func (t *tally) json(raw json.RawMessage) int {
	var text strings.Builder
	sum, mediaType := 0, ""
	for values := (scanner{raw: raw}); ; {
		token, kind := values.next()
		switch {
		case kind == ended:
			return sum + t.text(text.String())
		case kind == memberName && string(values.name) == "cache_control":
			values.skip()
		case kind == stringValue && isSeal(values.name):
			sum += sealed(len(token))
		case kind == stringValue:
			if file, is := payloadOf(token); is {
				sum += file.tokens(mediaType)
				continue
			}
			content := decoded(token)
			if isType(values.name) {
				mediaType = content
			}
			text.WriteByte('"')
			text.WriteString(content)
			text.WriteByte('"')
		default:
			text.Write(token)
		}
	}
}

// isType reports whether a member names the type of a file next to it.
func isType(name []byte) bool {
	switch string(name) {
	case "media_type", "mime_type", "mimeType", "type":
		return true
	}
	return false
}

// isSeal reports whether a member holds content that only the provider can read.
func isSeal(name []byte) bool {
	switch string(name) {
	case "signature", "encrypted_content", "encrypted_index":
		return true
	}
	return false
}
