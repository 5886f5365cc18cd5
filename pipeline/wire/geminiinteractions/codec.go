package geminiinteractions

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Codec is the wire format of POST /v1beta/interactions.
type Codec struct{}

// New returns the codec.
func New() Codec { return Codec{} }

// Format returns conversation.GeminiInteractions.
func (Codec) Format() conversation.Format { return conversation.GeminiInteractions }

// List returns "input".
func (Codec) List() string { return "input" }

// Normalize implements wire.Codec.
func (Codec) Normalize(message conversation.Message) []byte { return wire.Normalize(message) }

// Mark returns raw, because the format has no cache markers.
func (Codec) Mark(raw json.RawMessage, _ string) json.RawMessage { return raw }

// Tap returns a reader of one answer.
func (Codec) Tap(stream bool) wire.Tap { return wire.NewTap(stream, &listener{}) }

// Interface guard.
var _ wire.Codec = Codec{}
