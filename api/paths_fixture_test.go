package api

// The endpoints that the tests send requests to.
const (
	messagesPath    = "/v1/messages"
	countPath       = messagesPath + "/count_tokens"
	chatPath        = "/v1/chat/completions"
	responsesPath   = "/v1/responses"
	inputTokensPath = responsesPath + "/input_tokens"
	compactPath     = responsesPath + "/compact"
)
