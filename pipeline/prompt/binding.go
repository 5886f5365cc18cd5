package prompt

import (
	"bytes"
	"encoding/json"
	"slices"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// Some of Anthropic's models bind thinking to everything before it and refuse a
// history that was edited, unless they are told to drop what no longer fits
// (docs: preserved thinking). It has to be said in every request for as long as
// the edited history is sent.
const (
	bindingBeta = "thinking-binding-controls-2026-08-01"
	binding     = "block_binding"
	behavior    = "prefix_mismatch_behavior"
	dropBlock   = `"drop_block"`
)

// release is how a provider is kept from refusing thinking that an edited history
// no longer fits. The zero value changes nothing.
type release struct {
	members []wire.Member // settings of the request that change
	beta    string        // value that the anthropic-beta header then needs
	strip   bool          // all thinking is left out
}

// name tells a release from others; empty for the one that changes nothing.
func (r release) name() string {
	switch {
	case r.strip:
		return "strip"
	case r.beta != "":
		return "drop_block"
	default:
		return ""
	}
}

// release returns how the thinking in a prompt is released from its binding.
// Where the setting that asks for it does not exist, all thinking has to go: a
// part from the middle would leave a gap, which is refused as well. Where nobody knows
// whether the history was edited before, thinking that fits must not go.
func (p *Prompt) release() release {
	exchange := p.Exchange
	model, edited := exchange.Model, isEdited(exchange, p.earlier.omits)
	if !exchange.Codec.Traits().ReleasesThinking || !model.BoundThinking || !edited && !p.mayBeEdited() {
		return release{}
	}
	thinking, ok := exchange.Body.Member("thinking")
	if !ok || wire.IsNull(thinking) {
		if !model.ThinksUnasked {
			return release{strip: edited}
		}
		thinking = json.RawMessage(`{"type":"adaptive"}`)
	}
	if !isBindable(thinking) {
		return release{strip: edited}
	}
	fallbacks, _ := exchange.Body.Member("fallbacks")
	return release{
		members: []wire.Member{
			{Name: "thinking", Raw: unbound(thinking)},
			{Name: "fallbacks", Raw: unboundEach(fallbacks)},
		},
		beta: bindingBeta,
	}
}

// isBindable reports whether a thinking setting knows how its binding is enforced.
func isBindable(thinking json.RawMessage) bool {
	kind := wire.Text(thinking, "type")
	return kind == "adaptive" || kind == "enabled"
}

// unbound returns a thinking setting that has the provider drop what does not fit.
func unbound(thinking json.RawMessage) json.RawMessage {
	controls := wire.Get(thinking, binding)
	if wire.IsNull(controls) {
		controls = json.RawMessage(`{}`)
	}
	return wire.Set(thinking, binding, wire.Set(controls, behavior, json.RawMessage(dropBlock)))
}

// unboundEach returns the models to fall back to: one with a thinking setting of
// its own needs it in there.
func unboundEach(fallbacks json.RawMessage) json.RawMessage {
	return wire.Replace(fallbacks, func(_ int, fallback json.RawMessage) json.RawMessage {
		if thinking := wire.Get(fallback, "thinking"); isBindable(thinking) {
			return wire.Set(fallback, "thinking", unbound(thinking))
		}
		return fallback
	})
}

// isEdited reports whether thinking in the request may have been made behind
// another history than the one that is sent: a projection is, or one was in an
// earlier request, which a client's own compaction or one that asks for its prompt
// to be left alone now shows as it came. What modules put behind messages stood
// there already when the model thought, unless the prompt omits it; behind the system
// prompt it may not have.
func isEdited(exchange *pipeline.Exchange, omits bool) bool {
	if isUntouchable(exchange) {
		return false
	}
	return exchange.Projection != nil && exchange.Projection.Covers > 0 || exchange.NextProjection > 1 ||
		omits || slices.ContainsFunc(exchange.Inserts, func(insert session.Insert) bool { return insert.Message == session.InSystem })
}

// mayBeEdited reports whether thinking in the prompt may have been made behind another
// history, of a lane that could not be found.
func (p *Prompt) mayBeEdited() bool {
	return p.earlier.isLost && !isUntouchable(p.Exchange) &&
		slices.ContainsFunc(p.Exchange.Digests, func(digest conversation.Digest) bool { return digest.Flags.Has(conversation.HasThinking) })
}

// isUntouchable reports whether a history is not to be edited for a reason of its own.
func isUntouchable(exchange *pipeline.Exchange) bool {
	return exchange.Request.ReadOnly != "" && exchange.Request.ReadOnly != bypass
}

// withoutThinking returns pieces of which no message holds any thinking. It
// depends on each message alone, so that what was sent once is sent again.
func withoutThinking(exchange *pipeline.Exchange, pieces []wire.Piece) []wire.Piece {
	stripped := make([]wire.Piece, 0, len(pieces))
	for _, piece := range pieces {
		if piece.Raw != nil {
			piece.Raw = eachWithoutThinking(piece.Raw)
			stripped = append(stripped, piece)
			continue
		}
		from := piece.From
		for i := piece.From; i < piece.To; i++ {
			if !exchange.Digests[i].Flags.Has(conversation.HasThinking) {
				continue
			}
			raw := messageWithoutThinking(exchange.Body.Element(i))
			stripped = append(stripped, wire.Piece{From: from, To: i}, wire.Piece{From: i, To: i + 1, Raw: raw})
			from = i + 1
		}
		stripped = append(stripped, wire.Piece{From: from, To: piece.To})
	}
	return stripped
}

// eachWithoutThinking returns comma-separated messages without their thinking.
func eachWithoutThinking(messages json.RawMessage) json.RawMessage {
	if !bytes.Contains(messages, []byte("thinking")) {
		return messages
	}
	list := append(append([]byte{'['}, messages...), ']')
	list = wire.Replace(list, func(_ int, message json.RawMessage) json.RawMessage {
		return messageWithoutThinking(message)
	})
	return list[1 : len(list)-1]
}

// noThought stands for an answer that was nothing but thinking: an answer without
// content is refused, and without the answer other messages would be out of place.
const noThought = `[{"type":"text","text":"[thinking left out]"}]`

// messageWithoutThinking returns a message without its thinking; the very same
// bytes if it has none.
func messageWithoutThinking(message json.RawMessage) json.RawMessage {
	content := wire.Get(message, "content")
	rest := wire.Replace(content, func(_ int, block json.RawMessage) json.RawMessage {
		switch wire.Text(block, "type") {
		case "thinking", "redacted_thinking":
			return nil
		}
		return block
	})
	switch {
	case len(rest) == len(content):
		return message
	case !wire.HasElements(rest):
		rest = json.RawMessage(noThought)
	}
	return wire.Set(message, "content", rest)
}
