// Package formats lists the wire formats that the proxy supports. A new format is a package below
// pipeline/wire and a line here.
package formats

import (
	"fmt"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/gemini"
	"palimpsest/pipeline/wire/geminiinteractions"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// All returns the codec of each format. The paths of Interactions begin as those of Gemini, so it comes first.
func All() []wire.Codec {
	return []wire.Codec{anthropic.New(), openaichat.New(), openairesponses.New(), geminiinteractions.New(), gemini.New()}
}

// Default returns the codec of the most common format. A client of unknown format gets its errors in it.
func Default() wire.Codec { return openaichat.New() }

// Of returns the codec of a format. known is false for any other.
func Of(format conversation.Format) (codec wire.Codec, known bool) {
	for _, codec := range All() {
		if codec.Format() == format {
			return codec, true
		}
	}
	return nil, false
}

// AtPath returns the codec of the conversations at an endpoint, such as "/v1/messages". known is
// false for an endpoint without conversations.
func AtPath(path string) (codec wire.Codec, known bool) {
	for _, codec := range All() {
		if codec.Traits().Path == path {
			return codec, true
		}
	}
	return nil, false
}

// ByFormat returns the codec of each format by its name.
func ByFormat() map[conversation.Format]wire.Codec {
	codecs := make(map[conversation.Format]wire.Codec)
	for _, codec := range All() {
		codecs[codec.Format()] = codec
	}
	return codecs
}

// Recognize returns the codec of a body by its members. known is false if no format matches.
func Recognize(body []byte) (codec wire.Codec, known bool) {
	hints, ok := wire.HintsOf(body)
	if !ok {
		return nil, false
	}
	best := 0
	for _, candidate := range All() {
		if sure := candidate.Recognize(hints); sure > best {
			codec, best = candidate, sure
		}
	}
	return codec, best > 0
}

// Parse reads a message of a format. An unlisted format is an error.
func Parse(format conversation.Format, raw []byte) (conversation.Message, error) {
	codec, known := Of(format)
	if !known {
		return conversation.Message{}, fmt.Errorf("format %q is unknown", format)
	}
	message, err := codec.Parse(raw)
	if err != nil {
		return conversation.Message{}, fmt.Errorf("parse %s: %w", format, err)
	}
	return message, nil
}
