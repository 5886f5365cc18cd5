package wire

// MemberUse is what a member of a body means for giving an answer again.
type MemberUse int

// The uses of a member.
const (
	Unknown      MemberUse = iota // not listed: the request is left alone
	Counts                        // changes the answer
	Formatting                    // changes nothing in the answer
	Conversation                  // holds the conversation
	Tools                         // holds the tools
	System                        // holds the system prompt
)

// Reuse says when an answer of a format may be given again to an equal request.
type Reuse struct {
	// Member returns what a member of a body is. Members that it does not know may refer
	// to what only the provider knows: a thread, a container, a connector.
	Member func(name string) MemberUse

	// Ends are the stop reasons of an answer in which the model said all it had to say.
	Ends []string

	// Requirements are what some members must say, in the order in which they are checked.
	Requirements []Requirement

	// SystemInList says that system messages stand in the conversation itself.
	SystemInList bool

	// ItemType is the type that a message of the conversation may name; "" if messages
	// have no type.
	ItemType string

	// TextType is the type of the block that a text sent as a string stands for.
	TextType string

	// ClientTools are the types of the tools that the client runs. "" stands for a tool
	// without a type.
	ClientTools []string
}

// Requirement is what a member of a body must say so that its answer may be given again.
type Requirement struct {
	Member  string
	Value   string // JSON without white space
	Present bool   // it must be there; otherwise it may also be absent or null
	Stored  bool   // otherwise the provider keeps the answer
}
