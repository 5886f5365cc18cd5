package gemini

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Codec is the wire format of generateContent and streamGenerateContent. A body holds two more members than
// Google's, the model and whether the answer is a stream, because the other formats have them there and Google has
// them in the path. The proxy adds them when a request arrives, and removes them before it leaves.
type Codec struct{}

// New returns the codec.
func New() Codec { return Codec{} }

// Format returns conversation.Gemini.
func (Codec) Format() conversation.Format { return conversation.Gemini }

// List returns "contents".
func (Codec) List() string { return "contents" }

// Normalize implements wire.Codec.
func (Codec) Normalize(message conversation.Message) []byte { return wire.Normalize(message) }

// Mark returns raw, because the format has no cache markers.
func (Codec) Mark(raw json.RawMessage, _ string) json.RawMessage { return raw }

// Tap returns a reader of one answer.
func (Codec) Tap(stream bool) wire.Tap { return wire.NewTap(stream, &listener{}) }

// Interface guard.
var _ wire.Codec = Codec{}
