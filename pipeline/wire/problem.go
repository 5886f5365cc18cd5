package wire

// Problem is our error.
type Problem struct {
	Status int
	Type   string // of Anthropic's list: "authentication_error", "invalid_request_error", "api_error", …
	// OpenAIType is the type for OpenAI's clients where it does not follow from Type;
	// empty: it does.
	OpenAIType string

	Code      string // "invalid_api_key", …; OpenAI's code, empty becomes null; Anthropic's details.error_code
	Param     string // the member at fault, for OpenAI; empty becomes null
	Message   string // says what to do next
	RequestID string
}
