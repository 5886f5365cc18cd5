package anthropic

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Codec is the wire format of POST /v1/messages.
type Codec struct{}

// New returns the codec.
func New() Codec { return Codec{} }

// Format returns conversation.Anthropic.
func (Codec) Format() conversation.Format { return conversation.Anthropic }

// List returns "messages".
func (Codec) List() string { return "messages" }

// Normalize implements wire.Codec.
func (Codec) Normalize(message conversation.Message) []byte { return wire.Normalize(message) }

// Mark returns an encoded message with one cache marker on its last block that accepts one; without markers
// if ttl is "".
func (Codec) Mark(raw json.RawMessage, ttl string) json.RawMessage { return mark(raw, ttl) }

// Tap returns a reader of one answer.
func (Codec) Tap(stream bool) wire.Tap { return wire.NewTap(stream, &listener{}) }

// Interface guard.
var _ wire.Codec = Codec{}
