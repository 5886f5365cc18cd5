package pipelinetest

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Grow returns the bodies that a client would have sent one after the other up to the conversation in body.
// Each ends where the model answers next.
func Grow(t testing.TB, codec wire.Codec, body []byte) [][]byte {
	t.Helper()

	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatalf("open body: %v", err)
	}
	messages := make([]conversation.Message, envelope.Len())
	for i := range messages {
		if messages[i], err = codec.Parse(envelope.Element(i)); err != nil {
			t.Fatalf("parse message %d: %v", i, err)
		}
	}
	var bodies [][]byte
	leads := true
	for i, message := range messages {
		leads = leads && message.Role == conversation.System
		if message.Role == conversation.Assistant || leads || i+1 < len(messages) && messages[i+1].Role != conversation.Assistant {
			continue
		}
		bodies = append(bodies, envelope.Seal([]wire.Piece{
			{From: 0, To: i + 1}, {From: i + 1, To: envelope.Len(), Raw: json.RawMessage{}},
		}))
	}
	return bodies
}
