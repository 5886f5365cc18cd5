package client

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
