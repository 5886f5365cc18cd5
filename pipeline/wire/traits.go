package wire

// Traits are the properties of a format that don't depend on a body.
type Traits struct {
	// Provider is the API family of the format: "anthropic", "openai". It is named after the company that
	// defined the API; compatible servers share it.
	Provider string

	// Path is the endpoint of conversations: "/v1/messages".
	Path string

	// Root is the beginning of all paths of the API, for an API with paths of its own; "" if it shares them.
	Root string

	// Address returns the path of a request to an endpoint, for an API that has the model, and whether the answer
	// is a stream, in the path; optional. Its bodies have them as members on their way through the proxy.
	Address func(endpoint, model string, stream bool) string

	// CountPath is the endpoint that counts a prompt's tokens; "" if absent.
	CountPath string

	// CompactPath is the endpoint that compacts a history for a client; "" if absent.
	CompactPath string

	// VersionHeader is a header that only clients of this format send; "" if absent.
	VersionHeader string

	// Version is the value of VersionHeader in our own requests.
	Version string

	// Beside holds further members, in JSON without braces, that a hand-written request should have in
	// addition to its model and messages; "" if absent.
	Beside string

	// HasWebSocket means that clients of this format try a WebSocket at Path first.
	HasWebSocket bool

	// MarksCache means that the provider caches a prompt only at the client's cache markers. Otherwise it
	// caches automatically.
	MarksCache bool

	// ReleasesThinking means that a body can ask the provider to drop thinking that no longer fits an edited
	// history (thinking.block_binding).
	ReleasesThinking bool

	// InstructsTools means that the provider adds its own instructions to a prompt with tools.
	InstructsTools bool
}
