package wire

// MemberUse is the role of a body's member in the reuse of an answer.
type MemberUse int

// The roles of a member.
const (
	Unknown      MemberUse = iota // not listed, so the request's answer is not reused
	Counts                        // changes the answer
	Formatting                    // does not affect the answer
	Conversation                  // holds the conversation
	Tools                         // holds the tools
	System                        // holds the system prompt
)

// Reuse holds the conditions under which an answer of a format may be reused for an equal request.
type Reuse struct {
	// Member returns the role of a body's member. Unknown members may refer to data that only the provider
	// has: a thread, a container, a connector.
	Member func(name string) MemberUse

	// Ends are the stop reasons of a complete answer.
	Ends []string

	// Requirements are the required values of some members, in the order of the checks.
	Requirements []Requirement

	// SystemInList means that system messages are part of the conversation.
	SystemInList bool

	// ItemType is the optional type of a message; "" if messages have no type.
	ItemType string

	// TextType is the type of a block equivalent to a string.
	TextType string

	// ClientTools are the types of the tools that clients run. "" is a tool without a type.
	ClientTools []string
}

// Requirement is a member's required value for the reuse of an answer.
type Requirement struct {
	Member  string
	Value   string // JSON without white space
	Present bool   // it must be present; otherwise it may also be absent or null
	Stored  bool   // otherwise the provider stores the answer
}
