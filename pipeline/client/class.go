package client

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// Kind is the purpose of a request.
type Kind string

// The kinds of requests. Treat Unknown, for requests without any sign, like Main.
const (
	Unknown         Kind = "unknown"
	Main            Kind = "main"             // continues the conversation
	Subagent        Kind = "subagent"         // continues that of an agent inside the session
	Compaction      Kind = "compaction"       // asks for the client's own summary of the conversation
	AfterCompaction Kind = "after-compaction" // the first request of Main or Subagent after it
	Title           Kind = "title"            // asks for a name for the session
	Auxiliary       Kind = "auxiliary"        // another small question by the client itself
	SideReply       Kind = "side-reply"       // an answer outside the conversation
)

// Trigger is why a client compacted.
type Trigger string

// The triggers of a compaction; "" if unknown.
const (
	Manual   Trigger = "manual"   // a person asked for it
	Auto     Trigger = "auto"     // the client saw the window fill
	Reactive Trigger = "reactive" // the provider refused the prompt
	Branch   Trigger = "branch"   // a person returned from another branch, which the summary describes
)

// Class is the classification of one request.
type Class struct {
	Kind    Kind
	Trigger Trigger
	Client  string // one of the names of this package
	Agent   bool   // the request comes from an agent inside the session, regardless of its Kind

	// Confidence in Kind: 1 for a header, a path or the type of an item, 0.95 for
	// metadata in the body, 0.9 and less for text, 0 for Unknown.
	Confidence float64

	// Source is the sign that Kind came from: "header x-claude-code-request-class", "metadata request_kind",
	// "path", "item compaction_trigger", "text", …
	Source string

	// Window is the client's number of the context window, which increases by one with each compaction; -1 if
	// absent.
	Window int

	// Marker is the marker that the client's compaction left in this request. It does not tell when that
	// happened.
	Marker Marker
}

// Marker is the place in a request where a client put its summary of the content it left out. It stays in
// every later request of the lane.
type Marker struct {
	// From is the first message that the client wrote for the summary, and Boundary the one with the summary;
	// both -1 without a marker. The client kept the messages after Boundary, and those before it, except its
	// instructions.
	From, Boundary int

	Client     string  // whose marker it is
	Confidence float64 // 1 for the type of an item, less for text
	Source     string  // "item compaction", "text"
	Branch     bool    // a summary of a branch, not of the conversation before
}

// The places of a marker.
const (
	inItem = "item compaction"
	inText = "text"
)

// Found reports whether there is a marker.
func (m Marker) Found() bool { return m.Source != "" }

// IsSide reports whether a request is outside the conversation. It must not become part of its session's
// history, and its lane is a side lane. The history of a compaction request is the main lane's plus one
// message. It may be sent with the lane's projection, and leaves the lane unchanged.
func (c Class) IsSide() bool {
	switch c.Kind {
	case Compaction, Title, Auxiliary, SideReply:
		return true
	case Unknown, Main, Subagent, AfterCompaction:
	}
	return false
}

// Known reports whether the client's compactions leave a Marker.
func (c Class) Known() bool { return isAgent(c.Client) && c.Client != Cursor }

// Known is a caller's knowledge for deciding whether a request is the first after a compaction. The zero
// value is a new lane.
type Known struct {
	// Messages counts the leading messages of this request that an earlier request of the same session had as
	// well.
	Messages int

	// Windows is one more than the highest Class.Window in the lane; 0 if absent.
	Windows int

	// Asked means that the session's last request of this agent was a Compaction. It distinguishes two
	// summaries with the same text.
	Asked bool

	// Finalized means that the same marker (the message at Marker.Boundary, by its identity) was seen before
	// in the session, so that a rewound or forked history does not count twice.
	Finalized bool
}

// First reports whether a request is the first after its client compacted itself. It checks, in order: a
// header that says so; a summary that the client has just asked for, with a history that ends early at the
// marker; a window number higher than all before; a marker that no earlier request had.
func (c Class) First(known Known) bool {
	switch {
	case c.IsSide():
		return false
	case c.Kind == AfterCompaction:
		return true
	case known.Asked && c.Marker.Found() && known.Messages <= c.Marker.Boundary+1:
		return true
	case known.Finalized:
		return false
	case c.Window >= 0 && known.Windows > 0 && !c.Marker.Branch:
		return c.Window >= known.Windows
	}
	return c.Marker.Found() && known.Messages <= c.Marker.From
}

// Finalize returns the class completed with the lane's state: AfterCompaction in place of Main, Subagent or
// Unknown if First is true, with the confidence of the sign behind it.
func (c Class) Finalize(known Known) Class {
	if c.Kind == AfterCompaction || !c.First(known) {
		return c
	}
	c.Kind = AfterCompaction
	if c.Window >= 0 && known.Windows > 0 && !c.Marker.Branch {
		c.Confidence, c.Source = 1, "window number"
		return c
	}
	c.Confidence, c.Source = c.Marker.Confidence, c.Marker.Source
	return c
}

// maxVersion limits the length of a client's version.
const maxVersion = 32

// Version returns the first version in a client's user agent, such as 2.1.330 of "claude-cli/2.1.330
// (external, cli)"; "" if absent.
func Version(headers http.Header) string {
	for product := range strings.FieldsSeq(headers.Get("User-Agent")) {
		_, version, found := strings.Cut(product, "/")
		if !found || version == "" || version[0] < '0' || version[0] > '9' {
			continue
		}
		end := strings.IndexFunc(version, func(r rune) bool {
			return !strings.ContainsRune(".-+", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end >= 0 {
			version = version[:end]
		}
		return version[:min(len(version), maxVersion)]
	}
	return ""
}

// Carried is the recorded thread that palimpsest resume continued in a new conversation.
type Carried struct {
	Client  string // client of the recorded thread
	Session uuid.UUID
	Thread  uuid.UUID
	Last    int // last message of the thread that was carried over
}

// carriedWords start the note in which palimpsest resume names the source of a conversation.
const carriedWords = "Palimpsest carried this conversation over from "

// carriedAmong is how many of a conversation's first messages may hold the note. Some clients put their own
// messages before the typed text.
const carriedAmong = 8

// Note returns the text before the first message of a carried-over conversation. It is a reminder, so that it
// does not become part of the conversation's title or identity.
func (c Carried) Note() string {
	return fmt.Sprintf(`<system-reminder>
%s%s: session %s, thread %s, messages 0 to %d.
Calls of tools that this client does not have stand in it as text, as [Tool call] and [Tool result]. Go on with the tools that you have, and do not write such text yourself.
</system-reminder>`, carriedWords, c.Client, c.Session, c.Thread, c.Last)
}

// CarriedFrom returns the thread that a conversation was carried over from. known is false if it wasn't.
func CarriedFrom(length int, message func(i int) (conversation.Message, error)) (carried Carried, known bool) {
	for i := range min(length, carriedAmong) {
		read, err := message(i)
		if err != nil || read.Role != conversation.User {
			continue
		}
		for j := range read.Blocks {
			if carried, known = readCarried(read.Blocks[j].Text); known {
				return carried, true
			}
		}
	}
	return Carried{}, false
}

func carriedForm() *regexp.Regexp {
	const id = `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`
	return regexp.MustCompile(`^([a-z-]{1,30}): session ` + id + `, thread ` + id + `, messages 0 to (\d{1,9})\.`)
}

// readCarried reads the note in a text.
func readCarried(text string) (Carried, bool) {
	if !strings.Contains(text, carriedWords) {
		return Carried{}, false
	}
	for _, reminder := range conversation.Reminders(text) {
		rest, opens := strings.CutPrefix(strings.TrimSpace(reminder), carriedWords)
		if !opens {
			continue
		}
		if parts := carriedForm().FindStringSubmatch(rest); parts != nil {
			last, _ := strconv.Atoi(parts[4]) // nine digits at most
			return Carried{Client: parts[1], Session: uuid.MustParse(parts[2]), Thread: uuid.MustParse(parts[3]), Last: last}, true
		}
	}
	return Carried{}, false
}

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
