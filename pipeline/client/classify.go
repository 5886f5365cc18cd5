package client

import (
	"net/http"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Classify evaluates the signs in a request, the strongest first: headers, metadata in the body, the path,
// types of items, texts by position. path is the request's path without its query; body is nil if it is
// unreadable. Classify is stateless: Class.Finalize decides whether a request with a Marker is the first
// after its compaction.
func Classify(headers http.Header, path string, body *wire.Envelope) Class {
	class := Class{Kind: Unknown, Client: Name(headers)}
	turn, read := readTurn(headers, body), readBody(body)
	if read.client != "" && (!isAgent(class.Client) || read.client == QwenCode) {
		class.Client = read.client // Qwen Code identifies itself as Claude Code to Anthropic
	}
	class.Window, class.Marker = turn.window, read.marker(class.Client)
	class.Agent = read.isAgent || isAgentHeader(headers) || turn.isChild()

	for _, look := range [...]func() claim{
		func() claim { return byHeader(headers, turn) },
		func() claim { return byMetadata(turn) },
		func() claim { return byPath(path) },
		read.byItem,
		read.byText,
		func() claim { return byDefault(headers, class, read) },
	} {
		if said := look(); said.kind != "" {
			class.Kind, class.Trigger, class.Confidence, class.Source = said.kind, said.trigger, said.confidence, said.source
			if !isAgent(class.Client) && said.client != "" {
				class.Client = said.client
			}
			break
		}
	}
	if class.Trigger == "" && class.Marker.Found() && !class.IsSide() {
		class.Trigger = read.trigger(class.Marker)
	}
	return class
}

// claim is the meaning of one sign in a request. Without a kind it is ignored.
type claim struct {
	kind       Kind
	trigger    Trigger
	confidence float64
	source     string
	client     string // "" if the sign does not tell
}

// byHeader reads the clients' hints in headers.
func byHeader(headers http.Header, turn turn) claim {
	if value := headers.Get("X-Claude-Code-Compaction"); value != "" {
		return claim{kind: Compaction, trigger: triggerOf(value), confidence: 1, source: "header x-claude-code-compaction"}
	}
	kind := claudeKind(headers.Get("X-Claude-Code-Request-Class"))
	if value := headers.Get("X-Claude-Code-Context-Compacted"); value != "" && (kind == "" || kind == Main || kind == Subagent) {
		return claim{kind: AfterCompaction, trigger: triggerOf(value), confidence: 1, source: "header x-claude-code-context-compacted"}
	}
	if kind != "" {
		return claim{kind: kind, confidence: 1, source: "header x-claude-code-request-class"}
	}
	if isOverseer(headers) {
		return claim{kind: Auxiliary, confidence: 1, source: "header x-openai-subagent"}
	}
	if kind = turn.requestKind(); kind != "" && turn.inHeader {
		return claim{kind: kind, trigger: triggerOf(turn.trigger), confidence: 1, source: "header x-codex-turn-metadata"}
	}
	if headers.Get(interactionType) == "conversation-compaction" {
		return claim{kind: Compaction, confidence: 1, source: "header x-interaction-type"}
	}
	if headers.Get(openAISubagent) == "compact" {
		return claim{kind: Compaction, confidence: 1, source: "header x-openai-subagent"}
	}
	return claim{}
}

// openAISubagent is the header in which Codex names the agent behind a request.
const openAISubagent = "X-Openai-Subagent"

// isOverseer reports whether a request comes from one of Codex's agents that watch the conversation from
// outside: it judges commands that the model wants to run, or gathers memories. Its input must stay exactly
// as Codex wrote it.
func isOverseer(headers http.Header) bool {
	switch headers.Get(openAISubagent) {
	case "guardian", "hook_auto_review", "memory_consolidation":
		return true
	}
	return false
}

// byMetadata reads Codex's metadata in the body.
func byMetadata(turn turn) claim {
	return claim{kind: turn.requestKind(), trigger: triggerOf(turn.trigger), confidence: 0.95, source: "metadata request_kind"}
}

// byPath recognizes the provider's endpoint for compactions.
func byPath(path string) claim {
	if !strings.HasSuffix(strings.TrimSuffix(path, "/"), "/responses/compact") {
		return claim{}
	}
	return claim{kind: Compaction, confidence: 1, source: "path"}
}

// byItem recognizes the item that asks the provider for a compaction.
func (r *reading) byItem() claim {
	if r.lastType != "compaction_trigger" {
		return claim{}
	}
	return claim{kind: Compaction, confidence: 1, source: "item compaction_trigger"}
}

// byText recognizes requests by the words at their start and end.
func (r *reading) byText() claim {
	if r.head.kind != "" {
		return claim{kind: r.head.kind, confidence: 0.9, source: "text"}
	}
	if asked, ok := r.ownRequest(); ok {
		return claim{kind: asked.kind, confidence: 0.9, source: "text", client: asked.client}
	}
	if r.lastRole == conversation.User && r.starts(r.last, sideQuestion) {
		return claim{kind: SideReply, confidence: 0.9, source: "text", client: ClaudeCode}
	}
	if r.isQuotaProbe() || r.isErrand() {
		return claim{kind: Auxiliary, confidence: 0.9, source: "text"}
	}
	return claim{}
}

// byDefault treats requests without another sign as part of the conversation: an agent's by its id, and a
// known client's.
func byDefault(headers http.Header, class Class, read *reading) claim {
	switch {
	case class.Client == ClaudeCode && read.isBareQuestion() && read.starts(read.users[0], fetchedPage):
		return claim{kind: Auxiliary, confidence: 0.9, source: "text"}
	case isAgentHeader(headers):
		return claim{kind: Subagent, confidence: 1, source: "header"}
	case class.Agent:
		return claim{kind: Subagent, confidence: 0.95, source: "metadata"}
	case isAgent(class.Client):
		return claim{kind: Main, confidence: 0.5, source: "client"}
	}
	return claim{}
}

// isAgentHeader reports whether a header shows that an agent inside the session sent the request.
func isAgentHeader(headers http.Header) bool {
	if headers.Get("X-Claude-Code-Agent-Id") != "" || headers.Get(interactionType) == "conversation-subagent" {
		return true
	}
	agent := headers.Get(openAISubagent)
	return agent != "" && agent != "compact" && !isOverseer(headers)
}

// claudeKind returns the kind for Claude Code's name of it; "" for an unknown name.
func claudeKind(class string) Kind {
	switch class {
	case "main":
		return Main
	case "subagent", "workflow":
		return Subagent
	case "compaction":
		return Compaction
	case "auxiliary":
		return Auxiliary
	case "side_reply":
		return SideReply
	}
	return ""
}

// requestKind returns the kind for Codex's name of it; "" for an unknown name.
func (t turn) requestKind() Kind {
	switch {
	case t.kind == "compaction":
		return Compaction
	case t.isTitle():
		return Title
	case t.kind == "turn" && t.isChild():
		return Subagent
	case t.kind == "turn":
		return Main
	}
	return ""
}

// triggerOf returns the trigger that a client names; "" for an unknown name.
func triggerOf(word string) Trigger {
	switch trigger := Trigger(word); trigger {
	case Manual, Auto, Reactive:
		return trigger
	case Branch:
	}
	return ""
}
