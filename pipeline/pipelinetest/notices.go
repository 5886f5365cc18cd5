package pipelinetest

import (
	"fmt"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// WithNotices returns a body of the Messages API in the form that Claude Code sends to its newest models: on
// claude-sonnet-5, a system message with the number of remaining tokens follows every user message that asks
// for an answer.
func WithNotices(body []byte) ([]byte, error) {
	codec := anthropic.New()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		return nil, fmt.Errorf("put notices into a body: %w", err)
	}
	roles := make([]conversation.Role, envelope.Len())
	for i := range roles {
		message, err := codec.Parse(envelope.Element(i))
		if err != nil {
			return nil, fmt.Errorf("put notices into a body: message %d: %w", i, err)
		}
		roles[i] = message.Role
	}
	var pieces []wire.Piece
	for i, role := range roles {
		pieces = append(pieces, wire.Piece{From: i, To: i + 1})
		if role == conversation.User && (i+1 == len(roles) || roles[i+1] == conversation.Assistant) {
			left := fmt.Appendf(nil, `{"role":"system","content":"<system-reminder>\n<total_tokens>%d tokens left</total_tokens>\n</system-reminder>"}`, 15_000_000-5_000*i)
			pieces = append(pieces, wire.Piece{From: i + 1, To: i + 1, Raw: left})
		}
	}
	return envelope.Seal(pieces, wire.Member{Name: "model", Raw: []byte(`"claude-sonnet-5"`)}), nil
}
