package wire

// Traits are what is known of a format without reading a body.
type Traits struct {
	// Provider is the API family that the format belongs to: "anthropic", "openai". Its
	// name is that of the company whose API it is; compatible servers share it.
	Provider string

	// Path is the endpoint of conversations: "/v1/messages".
	Path string

	// CountPath is the endpoint that counts a prompt's tokens; "" if absent.
	CountPath string

	// CompactPath is the endpoint that compacts a history for a client; "" if absent.
	CompactPath string

	// VersionHeader is a header that clients of this format send and others do not; ""
	// if absent.
	VersionHeader string

	// Version is the value of VersionHeader in requests of our own.
	Version string

	// Beside are members of a body, in JSON without braces, that a request sent by hand should have
	// beside its model and messages; "" if none.
	Beside string

	// HasWebSocket says that clients of this format try a WebSocket at Path first.
	HasWebSocket bool

	// MarksCache says that the provider caches a prompt only where the client puts cache
	// markers. Without it the provider caches on its own.
	MarksCache bool

	// ReleasesThinking says that a body can ask the provider to drop thinking that an
	// edited history no longer fits (thinking.block_binding).
	ReleasesThinking bool

	// InstructsTools says that the provider puts instructions of its own before a prompt
	// with tools.
	InstructsTools bool
}
