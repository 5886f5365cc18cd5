package prompt

import (
	"encoding/json"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Some of Anthropic's models bind thinking to everything before it and refuse a
// history that was edited, unless they are told to drop what no longer fits
// (docs: preserved thinking). It has to be said in every request for as long as
// the edited history is sent.
const (
	bindingBeta = "thinking-binding-controls-2026-08-01"
	dropBlock   = `{"prefix_mismatch_behavior":"drop_block"}`
)

// unbind returns the request's thinking setting with which the provider drops
// thinking that an edited prompt no longer fits; nil if none is needed.
func unbind(exchange *pipeline.Exchange) json.RawMessage {
	if exchange.Codec.Format() != conversation.Anthropic || !exchange.Model.BoundThinking {
		return nil
	}
	thinking, ok := exchange.Body.Member("thinking")
	if !ok || wire.IsNull(thinking) {
		return json.RawMessage(`{"type":"adaptive","block_binding":` + dropBlock + `}`)
	}
	if wire.Text(thinking, "type") == "disabled" {
		return nil
	}
	return wire.Set(thinking, "block_binding", json.RawMessage(dropBlock))
}
