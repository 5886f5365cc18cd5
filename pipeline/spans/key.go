package spans

// Key names an attribute of a step.
type Key string

// The attribute names of OpenTelemetry's conventions for HTTP, errors and GenAI.
const (
	ErrorType = Key("error.type")

	Method        = Key("http.request.method")
	Resends       = Key("http.request.resend_count")
	Status        = Key("http.response.status_code")
	Route         = Key("http.route")
	ServerAddress = Key("server.address")
	ServerPort    = Key("server.port")

	Conversation  = Key("gen_ai.conversation.id")
	Operation     = Key("gen_ai.operation.name")
	Provider      = Key("gen_ai.provider.name")
	MaxTokens     = Key("gen_ai.request.max_tokens")
	RequestModel  = Key("gen_ai.request.model")
	RequestStream = Key("gen_ai.request.stream")
	FinishReasons = Key("gen_ai.response.finish_reasons")
	ResponseModel = Key("gen_ai.response.model")
	FirstChunk    = Key("gen_ai.response.time_to_first_chunk")
	CacheWrite    = Key("gen_ai.usage.cache_creation.input_tokens")
	CacheRead     = Key("gen_ai.usage.cache_read.input_tokens")
	InputTokens   = Key("gen_ai.usage.input_tokens")
	OutputTokens  = Key("gen_ai.usage.output_tokens")
)

// Our own names.
const (
	Aborted      = Key("palimpsest.aborted")
	APIKey       = Key("palimpsest.api_key.id")
	Attempts     = Key("palimpsest.attempts")
	BodyBytes    = Key("palimpsest.body.bytes")
	Cache        = Key("palimpsest.answer_cache")
	Client       = Key("palimpsest.client")
	Compression  = Key("palimpsest.compression")
	Covers       = Key("palimpsest.summary.messages")
	ErrorFrom    = Key("palimpsest.error.from")
	Lane         = Key("palimpsest.lane.id")
	Messages     = Key("palimpsest.messages")
	Outcome      = Key("palimpsest.outcome")
	ProviderKey  = Key("palimpsest.provider_key.id")
	Request      = Key("palimpsest.request.id")
	Session      = Key("palimpsest.session.id")
	TokensAfter  = Key("palimpsest.tokens.after")
	TokensBefore = Key("palimpsest.tokens.before")
	Workspace    = Key("palimpsest.workspace.id")
)
