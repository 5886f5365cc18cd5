package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// sessionHeaders are the headers in which clients name their session, in the
// order of the contract.
var sessionHeaders = [...]string{
	"X-Palimpsest-Session-Id",
	"X-Claude-Code-Session-Id",
	"Session-Id", "Session_id", "Thread-Id",
	"X-Session-Id", "X-Session-Affinity",
	"X-Litellm-Session-Id", "Helicone-Session-Id",
}

// userAgents tell clients by the start of a word in their user agent.
var userAgents = [...]struct{ mark, name string }{
	{"claude-cli", "claude-code"},
	{"codex", "codex"},
	{"opencode", "opencode"},
	{"pi-coding-agent", "pi"},
	{"roocode", "roo"},
	{"cline", "cline"},
	{"cursor", "cursor"},
	{"ai-sdk", "ai-sdk"},
	{"anthropic/", "anthropic-sdk"},
	{"openai/", "openai-sdk"},
	{"curl/", "curl"},
}

// hint says what a request tells about its session: a header first, then the
// body's own member. It is for correlation only and never gives access.
func hint(header http.Header, asked controls, request wire.Request) session.Hint {
	hint := session.Hint{Lane: lane(header, asked)}
	for _, name := range sessionHeaders {
		if value := header.Get(name); value != "" && len(value) <= maxSessionID {
			hint.Name, hint.Source = value, strings.ToLower(name)
			return hint
		}
	}
	if request.SessionID != "" && len(request.SessionID) <= maxSessionID {
		hint.Name, hint.Source = request.SessionID, request.SessionSource
		return hint
	}
	hint.Source = "lineage"
	return hint
}

// lane returns the client's own name for a line of history, if it has one.
func lane(header http.Header, asked controls) string {
	if asked.lane != "" {
		return asked.lane
	}
	if agent := header.Get("X-Claude-Code-Agent-Id"); agent != "" {
		return agent
	}
	var turn struct {
		Thread string `json:"thread_id"`
		Parent string `json:"parent_thread_id"`
	}
	metadata := header.Get("X-Codex-Turn-Metadata")
	if metadata == "" || json.Unmarshal([]byte(metadata), &turn) != nil || turn.Parent == "" {
		return ""
	}
	return turn.Thread
}

// clientName returns the client's name by its user agent; "other" for an unknown one.
func clientName(userAgent string) string {
	lower := strings.ToLower(userAgent)
	for _, known := range userAgents {
		if strings.Contains(lower, known.mark) {
			return known.name
		}
	}
	return "other"
}
