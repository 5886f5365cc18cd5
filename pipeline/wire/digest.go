package wire

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"palimpsest/pipeline/conversation"
)

// Digest reads one element of a list and returns its digest; count counts its tokens. Unlike Open it checks
// every byte. The error is an *Invalid if raw is not valid JSON, or otherwise the codec's.
func Digest(codec Codec, raw json.RawMessage, count func(conversation.Message) int) (conversation.Digest, error) {
	return digestOf(codec, raw, count, codec.Normalize)
}

// DatedDigest is Digest for messages far behind the first of a large request. It does not ignore dates and
// times in texts, so that the request costs about the same whatever it contains.
func DatedDigest(codec Codec, raw json.RawMessage, count func(conversation.Message) int) (conversation.Digest, error) {
	return digestOf(codec, raw, count, func(message conversation.Message) []byte { return normalize(message, 0) })
}

func digestOf(codec Codec, raw json.RawMessage, count func(conversation.Message) int, identifies func(conversation.Message) []byte) (conversation.Digest, error) {
	if !json.Valid(raw) {
		return conversation.Digest{}, invalidJSON(raw)
	}
	message, err := codec.Parse(raw)
	if err != nil {
		return conversation.Digest{}, fmt.Errorf("parse: %w", err)
	}
	digest := conversation.Digest{
		Sum:      sha256.Sum256(raw),
		Identity: identity(message.Role, identifies(message)),
		Role:     message.Role,
		Flags:    message.Flags(),
		Tokens:   count(message),
		Markers:  len(message.Markers),
	}
	if digest.Markers > 0 {
		digest.MarkerTTL = message.Markers[digest.Markers-1]
	}
	return digest, nil
}

func identity(role conversation.Role, content []byte) conversation.Hash {
	hash := sha256.New()
	hash.Write([]byte(role))
	hash.Write([]byte{0})
	hash.Write(content)
	return conversation.Hash(hash.Sum(nil))
}

func invalidJSON(raw json.RawMessage) error {
	var value json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(raw, &value); errors.As(err, &syntax) {
		return &Invalid{Message: fmt.Sprintf("not valid JSON at its byte %d: %s", syntax.Offset, syntax)}
	}
	return &Invalid{Message: "not valid JSON"}
}
