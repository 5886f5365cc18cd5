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

// Some of Anthropic's models bind thinking to everything before it and refuse a history that was edited,
// unless the request says that mismatched blocks may be dropped (docs: preserved thinking). Every request
// must say so for as long as the edited history is sent.
const (
	bindingBeta = "thinking-binding-controls-2026-08-01"
	binding     = "block_binding"
	behavior    = "prefix_mismatch_behavior"
	dropBlock   = `"drop_block"`
)

// release describes how to keep a provider from refusing thinking that doesn't match an edited history. The
// zero value has no effect.
type release struct {
	members []wire.Member // settings of the request that change
	beta    string        // value that the anthropic-beta header then needs
	strip   bool          // leave out all thinking
}

// name identifies a release. "" is the zero release.
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

// release returns how the thinking in a prompt is released from its binding. Where the provider has no
// setting for it, all thinking is removed, because a gap in the middle is refused as well. If it is unknown
// whether the history was edited before, thinking stays, since it may match.
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

// unbound returns a thinking setting with which the provider drops blocks that don't match.
func unbound(thinking json.RawMessage) json.RawMessage {
	controls := wire.Get(thinking, binding)
	if wire.IsNull(controls) {
		controls = json.RawMessage(`{}`)
	}
	return wire.Set(thinking, binding, wire.Set(controls, behavior, json.RawMessage(dropBlock)))
}

// unboundEach does the same for fallback models that have a thinking setting of their own.
func unboundEach(fallbacks json.RawMessage) json.RawMessage {
	return wire.Replace(fallbacks, func(_ int, fallback json.RawMessage) json.RawMessage {
		if thinking := wire.Get(fallback, "thinking"); isBindable(thinking) {
			return wire.Set(fallback, "thinking", unbound(thinking))
		}
		return fallback
	})
}

// isEdited reports whether thinking in the request may have been produced for a different history than the
// one sent now. This is so if the lane has a projection, or had one in an earlier request that now shows its
// messages unchanged (after the client's own compaction, or with bypass). Inserts behind messages were
// already there when the model thought, unless this prompt omits them. Inserts behind the system prompt may
// be newer.
func isEdited(exchange *pipeline.Exchange, omits bool) bool {
	if isUntouchable(&exchange.Request) {
		return false
	}
	return exchange.Lane.Projection != nil && exchange.Lane.Projection.Covers > 0 || exchange.Lane.NextProjection > 1 ||
		omits || slices.ContainsFunc(exchange.Lane.Inserts, func(insert session.Insert) bool { return insert.Message == session.InSystem })
}

// mayBeEdited reports whether thinking in the prompt may have been made behind another
// history, of a lane that could not be found.
func (p *Prompt) mayBeEdited() bool {
	return p.earlier.isLost && !isUntouchable(&p.Exchange.Request) &&
		slices.ContainsFunc(p.Exchange.Conversation.Digests, func(digest conversation.Digest) bool { return digest.Flags.Has(conversation.HasThinking) })
}

// isUntouchable reports whether a history is read-only for a reason other than bypass.
func isUntouchable(request *wire.Request) bool {
	return request.ReadOnly != "" && request.ReadOnly != bypass
}

// withoutThinking returns pieces whose messages hold no thinking. The result depends on each message alone,
// so that later requests send the same bytes again.
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
			if !exchange.Conversation.Digests[i].Flags.Has(conversation.HasThinking) {
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

// noThought replaces an answer that consists of thinking only. Providers refuse an answer without content,
// and dropping the answer would displace other messages.
const noThought = `[{"type":"text","text":"[thinking left out]"}]`

// messageWithoutThinking returns a message without its thinking, or the same bytes if it has no thinking.
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
