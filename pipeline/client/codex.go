package client

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"palimpsest/pipeline/wire"
)

// turn is Codex's information about a request: in x-codex-turn-metadata, in its own headers, and again in the
// body's client_metadata.
type turn struct {
	inHeader bool // kind came from a header, not the body

	kind    string // "turn", "compaction", …
	trigger string // of a compaction
	session string
	thread  string
	parent  string // thread that started this one; "" for the main one
	window  int    // how often the thread was compacted before; -1 if absent
	began   string // how the thread's history began: "new", "warm_fork", …
	source  string // purpose of the thread: "user", "subagent", "thread_title", …
	forked  string // thread that a person forked this one from, as for a side chat; its session is a different one
}

// copied returns the session whose own thread a turn's thread was copied from; "" if it wasn't. A session is
// named after its own thread.
func (t turn) copied() string {
	switch {
	case t.began != "warm_fork":
		return ""
	case t.isChild() && t.parent == t.session:
		return t.session
	case t.isChild():
		return "" // of another agent
	}
	return t.forked
}

// isChild reports whether another thread started a turn's thread.
func (t turn) isChild() bool { return t.parent != "" && t.parent != t.thread }

// isTitle reports whether a turn asks for a title, in a separate thread.
func (t turn) isTitle() bool { return t.source == "thread_title" }

// isBeside reports whether a turn belongs to a thread other than the session's own.
func (t turn) isBeside() bool {
	return t.isChild() || t.session != "" && t.thread != "" && t.session != t.thread
}

// readTurn reads Codex's information in the headers and, for missing values, in the body, which may be nil.
func readTurn(headers http.Header, body *wire.Envelope) turn {
	read := turn{
		inHeader: true, window: -1,
		session: headers.Get("Session-Id"), thread: headers.Get("Thread-Id"),
		parent: headers.Get("X-Codex-Parent-Thread-Id"),
	}
	metadata, window := headers.Get("X-Codex-Turn-Metadata"), headers.Get("X-Codex-Window-Id")
	if metadata == "" && window == "" && body != nil {
		inBody, _ := body.Member("client_metadata")
		if len(inBody) == 0 {
			return read
		}
		read.inHeader = false
		metadata, window = wire.Text(inBody, "x-codex-turn-metadata"), wire.Text(inBody, "x-codex-window-id")
	}
	read = read.with(json.RawMessage(metadata))
	if _, number, ok := cutLast(window, ":"); ok && read.window < 0 {
		read.window = windowNumber(number)
	}
	return read
}

// with returns the turn completed with Codex's metadata.
func (t turn) with(metadata json.RawMessage) turn {
	for name, value := range wire.Members(metadata) {
		switch string(name) {
		case "request_kind":
			t.kind, _ = wire.String(value)
		case "compaction":
			t.trigger = wire.Text(value, "trigger")
		case "session_id":
			t.session, _ = wire.String(value)
		case "thread_id":
			t.thread, _ = wire.String(value)
		case "parent_thread_id":
			t.parent, _ = wire.String(value)
		case "window_number":
			t.window = windowNumber(string(value))
		case "history_initialization":
			t.began, _ = wire.String(value)
		case "forked_from_thread_id":
			t.forked, _ = wire.String(value)
		case "thread_source":
			t.source, _ = wire.String(value)
		}
	}
	return t
}

// windowNumber reads the number of a context window; -1 if invalid.
func windowNumber(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		return -1
	}
	return number
}

// cutLast cuts text around the last instance of separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}
