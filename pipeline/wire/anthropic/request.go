package anthropic

import (
	"encoding/json"

	"palimpsest/pipeline/wire"
)

// Request implements wire.Codec.
func (c Codec) Request(body *wire.Envelope) (wire.Request, error) {
	fields := wire.NewFields(body)
	system, tools := fields.TextOrArray("system"), fields.Array("tools")
	fields.Array(c.List())
	request := wire.Request{
		Model:     fields.String("model"),
		Stream:    fields.Bool("stream"),
		MaxOutput: fields.Int("max_tokens"),
		ReadOnly:  readOnly(fields, body),

		// With enabled thinking, the message must begin with it. A model with adaptive thinking has no such
		// rule.
		ThinkingFirst: wire.Text(fields.Object("thinking"), "type") == "enabled",
	}
	for _, part := range []json.RawMessage{system, tools} {
		if part != nil {
			request.Fixed = append(request.Fixed, part)
		}
	}
	for _, ttl := range fixedMarkers(tools, system, fields.Object("cache_control")) {
		request.Markers++
		request.MarkerTTL = ttl
	}
	// A rejected request that another model answers on the credit of the first, or an answer that continues
	// one that ended early.
	request.Repeats = fields.Raw("fallback_credit_token") != nil || wire.Text(fields.Raw("resumption"), "token") != ""
	held := fields.Raw(thread)
	switch kind := wire.Text(held, "type"); {
	case held == nil:
	case kind == "create":
		request.Holds = thread
	default:
		request.ReadOnly, request.Resumes = thread, kind == "continue"
	}
	request.SessionID, request.SessionSource = wire.SessionName(body)
	request.EndUser = wire.EndUser(body)
	return request, fields.Err()
}

// thread is the member that makes the provider hold the conversation between requests
// (https://platform.claude.com/docs/en/build-with-claude/message-threads). The first request sends all of it,
// later ones only the new messages.
const thread = "thread"

// readOnly returns why the history must stay as the client sent it, other than a thread; "" if it may change.
func readOnly(fields *wire.Fields, body *wire.Envelope) string {
	if fields.Raw("compaction") != nil {
		return "compaction"
	}
	binding := wire.Get(fields.Object("thinking"), "block_binding")
	if wire.Text(binding, "prefix_mismatch_behavior") == "error" {
		return "thinking.block_binding"
	}
	if opensWithCompaction(body) {
		return "compaction_block"
	}
	return ""
}

// opensWithCompaction reports whether the conversation begins with the provider's own summary, signed
// together with the messages after it.
func opensWithCompaction(body *wire.Envelope) bool {
	if body.Len() == 0 {
		return false
	}
	for _, block := range wire.Elements(wire.Get(body.Element(0), "content")) {
		return wire.Text(block, "type") == "compaction"
	}
	return false
}

// fixedMarkers returns the times to live of the markers outside the messages, in the order in which the
// provider reads them. The top-level marker, which moves along with the end of the prompt, comes last.
func fixedMarkers(tools, system, auto json.RawMessage) []string {
	var markers []string
	for _, list := range []json.RawMessage{tools, system} {
		for _, element := range wire.Elements(list) {
			markers = appendMarker(markers, wire.Get(element, "cache_control"))
		}
	}
	return appendMarker(markers, auto)
}
