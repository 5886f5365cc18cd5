package wire

// Problem is an error that the proxy reports.
type Problem struct {
	Status int
	Type   string // from Anthropic's list: "authentication_error", "invalid_request_error", "api_error", …
	// OpenAIType is the type for OpenAI's clients; "" to derive it from Type.
	OpenAIType string

	Code      string // "invalid_api_key", …; OpenAI's code, "" becomes null; Anthropic's details.error_code
	Param     string // the faulty member, for OpenAI; "" becomes null
	Message   string // says what to do next
	RequestID string
}
