package client

import (
	"net/http"
	"strings"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// maxName limits the name of a session or lane, in bytes. Longer values are ignored.
const maxName = 255

// sessionHeaders are the headers in which clients name their session, by priority.
var sessionHeaders = [...]struct{ header, source string }{
	{"X-Palimpsest-Session-Id", "x-palimpsest-session-id"},
	{"X-Claude-Code-Session-Id", "x-claude-code-session-id"},
	{"Session-Id", "session-id"},
	{"Session_id", "session_id"},
	{"Thread-Id", "thread-id"},
	{"X-Session-Id", "x-session-id"},
	{"X-Session-Affinity", "x-session-affinity"},
	{"X-Litellm-Session-Id", "x-litellm-session-id"},
	{"Helicone-Session-Id", "helicone-session-id"},
}

// Hint returns a request's information about its session: the first header that names one, otherwise the
// body's own member, otherwise "lineage" as the source. It is for correlation only and never grants access.
func Hint(headers http.Header, request wire.Request) session.Hint {
	turn := readTurn(headers, nil)
	hint := session.Hint{Lane: lane(headers, turn), Source: "lineage"}
	for _, known := range sessionHeaders {
		if value := headers.Get(known.header); isName(value) {
			if turn.isTitle() && value == turn.session {
				return hint // a thread for one question: its name would be that of a conversation
			}
			hint.Name, hint.Source = value, known.source
			if from := turn.copied(); isName(from) && value == turn.session && isName(turn.thread) && (hint.Lane == "" || hint.Lane == turn.thread) {
				hint.Name, hint.Lane, hint.Copied = from, turn.thread, true
			}
			return hint
		}
	}
	if isName(request.SessionID) {
		hint.Name, hint.Source = request.SessionID, request.SessionSource
	}
	return hint
}

// lane returns the client's name for a line of history other than the session's main one; "" for the main one
// and without such a name.
func lane(headers http.Header, turn turn) string {
	for _, header := range [...]string{"X-Palimpsest-Lane", "X-Claude-Code-Agent-Id"} {
		if value := headers.Get(header); isName(value) {
			return value
		}
	}
	if turn.isBeside() && isName(turn.thread) {
		return turn.thread
	}
	return ""
}

func isName(value string) bool {
	return value != "" && len(value) <= maxName && strings.TrimSpace(value) != ""
}
