package client

// Kind says what a request is for.
type Kind string

// The kinds of requests. Unknown is what nothing tells apart: treat it as Main.
const (
	Unknown         Kind = "unknown"
	Main            Kind = "main"             // carries the conversation on
	Subagent        Kind = "subagent"         // carries that of an agent inside the session on
	Compaction      Kind = "compaction"       // asks for the client's own summary of the conversation
	AfterCompaction Kind = "after-compaction" // the first of Main or Subagent after it
	Title           Kind = "title"            // asks for a name for the session
	Auxiliary       Kind = "auxiliary"        // another small question of the client's own
	SideReply       Kind = "side-reply"       // an answer beside the conversation
)

// Trigger says why a client compacted.
type Trigger string

// The triggers of a compaction; empty where it is not known.
const (
	Manual   Trigger = "manual"   // a person asked for it
	Auto     Trigger = "auto"     // the client saw the window fill
	Reactive Trigger = "reactive" // the provider refused the prompt
	Branch   Trigger = "branch"   // a person came back from another branch, of which the summary tells
)

// Class is what one request says of itself.
type Class struct {
	Kind    Kind
	Trigger Trigger
	Client  string // one of the names of this package
	Agent   bool   // the request is of an agent inside the session, whatever its Kind

	// Confidence in Kind: 1 for a header, a path or the type of an item, 0.95 for
	// metadata in the body, 0.9 and less for text, 0 for Unknown.
	Confidence float64

	// Source is what Kind was told by: "header x-claude-code-request-class",
	// "metadata request_kind", "path", "item compaction_trigger", "text", …
	Source string

	// Window is the number of the context window that the client counts; it grows
	// by one with each compaction. -1 where the client counts none.
	Window int

	// Marker is the mark that a compaction of the client's left in this request.
	// It says nothing about when that was.
	Marker Marker
}

// Marker is the place in a request where a client put its summary of what it left
// out. It stays in every later request of the lane.
type Marker struct {
	// From is the first message that the client wrote for the summary's sake, and
	// Boundary the one that holds the summary; both -1 without a marker. Messages
	// before Boundary that are not the client's instructions were kept by it, as
	// were those behind.
	From, Boundary int

	Client     string  // whose marker it is
	Confidence float64 // 1 for the type of an item, less for text
	Source     string  // "item compaction", "text"
	Branch     bool    // a summary of a branch, not of the conversation before
}

// Where a marker is found.
const (
	inItem = "item compaction"
	inText = "text"
)

// Found reports whether there is a marker.
func (m Marker) Found() bool { return m.Source != "" }

// IsSide reports whether a request stands beside the conversation: it must not
// become a part of its session's history, and its lane is a side lane. A
// compaction's history is the main lane's with one message more; it may be sent
// as the lane's projection says and leaves the lane as it is.
func (c Class) IsSide() bool {
	switch c.Kind {
	case Compaction, Title, Auxiliary, SideReply:
		return true
	case Unknown, Main, Subagent, AfterCompaction:
	}
	return false
}

// Known reports whether the client is one whose compactions leave a Marker.
func (c Class) Known() bool { return isAgent(c.Client) && c.Client != Cursor }

// Known is what a caller remembers that bears on whether a request is the first
// after a compaction. The zero value is a lane never seen.
type Known struct {
	// Messages counts the leading messages of this request that an earlier request
	// of the same session held as well: where its history was left.
	Messages int

	// Windows is one more than the highest Class.Window seen in the lane; 0 if none
	// was.
	Windows int

	// Asked says that the session's last request of this agent was a Compaction.
	// Two summaries that say the same are told apart by it.
	Asked bool

	// Finalized says that this very marker (the message at Marker.Boundary, by its
	// identity) was met in the session before, so that a rewound or forked history
	// does not count twice.
	Finalized bool
}

// First reports whether a request is the first after its client compacted itself.
// A header that says so decides; then that the client has just asked for a summary
// and its history ends early at the marker; then a window number higher than all
// before; then a marker that no earlier request held.
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

// Finalize returns the class with what only the lane tells: AfterCompaction in
// place of Main, Subagent or Unknown where First holds, as sure as what told it.
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
