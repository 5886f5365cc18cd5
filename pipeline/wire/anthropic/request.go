package anthropic

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/wire"
)

// Request reads what the proxy needs to know of a body beside its messages.
func (c Codec) Request(body *wire.Envelope) (wire.Request, error) {
	fields := wire.NewFields(body)
	system, tools := fields.TextOrArray("system"), fields.Array("tools")
	fields.Array(c.List())
	request := wire.Request{
		Model:     fields.String("model"),
		Stream:    fields.Bool("stream"),
		MaxOutput: fields.Int("max_tokens"),
		ReadOnly:  readOnly(fields, body),
		TakesOut:  takesOut(fields.Object("context_management")),

		// Asked for by hand, thinking comes first; a model that thinks as it sees
		// fit is not held to it.
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
	// A refused request that another model answers on the credit of the first, and an answer that is
	// continued from where it ended early.
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

// thread is the member that has the provider hold the conversation between requests
// (https://platform.claude.com/docs/en/build-with-claude/message-threads): the first
// sends all of it, each later one what is new.
const thread = "thread"

// takesOut reports whether context management has edits that remove tool results. What
// clears thinking, or compacts the whole history, leaves those that it leaves as they are.
func takesOut(management json.RawMessage) bool {
	for _, edit := range wire.Elements(wire.Get(management, "edits")) {
		kind := wire.Text(edit, "type")
		if !strings.HasPrefix(kind, "clear_thinking_") && !strings.HasPrefix(kind, "compact_") {
			return true
		}
	}
	return false
}

// readOnly says why the history must stay as the client sent it, beside a thread; empty if it may
// change.
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

// opensWithCompaction reports whether the conversation begins with the provider's
// own summary of what came before, which it signs together with what follows.
func opensWithCompaction(body *wire.Envelope) bool {
	if body.Len() == 0 {
		return false
	}
	for _, block := range wire.Elements(wire.Get(body.Element(0), "content")) {
		return wire.Text(block, "type") == "compaction"
	}
	return false
}

// fixedMarkers returns the times to live of the markers outside the messages, in
// the order in which the provider reads them; the one at the top level, which
// moves along with the end of the prompt, comes last.
func fixedMarkers(tools, system, auto json.RawMessage) []string {
	var markers []string
	for _, list := range []json.RawMessage{tools, system} {
		for _, element := range wire.Elements(list) {
			markers = appendMarker(markers, wire.Get(element, "cache_control"))
		}
	}
	return appendMarker(markers, auto)
}
