package tenants

import "slices"

// Platform is a cloud that offers a provider's models at its own addresses and with its own sign-in. "" is the
// provider itself.
type Platform string

// PlatformBedrock is Amazon Bedrock.
const PlatformBedrock Platform = "bedrock"

// Preset is a known provider: its URL and how it takes its key.
type Preset struct {
	ID       string
	Title    string
	Provider Provider // dialect of its requests
	Both     bool     // it accepts the other dialect too
	Platform Platform // its requests have another form than its dialect's
	BaseURL  string   // "" for the dialect's own; RESOURCE is a placeholder for the user's resource, REGION for the region
	Auth     Auth
	Models   []string // for a key without models of its own
	Private  bool     // it runs on a private address, so that private base URLs must be allowed
	Hint     string   // instructions for the user; optional
}

// Presets returns the known providers. The first two define the dialects that the others speak. Sources:
//
//   - Anthropic: https://docs.anthropic.com/en/api/overview (x-api-key)
//   - OpenAI: https://platform.openai.com/docs/api-reference/authentication (bearer token)
//   - Azure OpenAI: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
//     (the v1 API at https://RESOURCE.openai.azure.com/openai/v1/, header api-key, no
//     api-version); before it, a path for each deployment and ?api-version=:
//     https://learn.microsoft.com/azure/ai-foundry/openai/reference
//   - Amazon Bedrock: https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys-use.html (bearer token) and
//     https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html
//   - Groq: https://console.groq.com/docs/openai (https://api.groq.com/openai/v1, bearer token)
//   - OpenRouter: https://openrouter.ai/docs (https://openrouter.ai/api/v1, bearer token,
//     optional HTTP-Referer and X-Title)
//   - vLLM: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
//     (http://localhost:8000/v1, bearer token given with --api-key)
//   - Ollama: https://docs.ollama.com/api/openai-compatibility (http://localhost:11434/v1, the
//     key is required and ignored) and https://docs.ollama.com/api/anthropic-compatibility
//     (http://localhost:11434 without /v1; Authorization: Bearer)
func Presets() []Preset {
	return []Preset{
		{ID: "anthropic", Title: "Anthropic", Provider: ProviderAnthropic},
		{ID: "openai", Title: "OpenAI", Provider: ProviderOpenAI},
		{ID: "azure", Title: "Azure OpenAI", Provider: ProviderOpenAI, BaseURL: "https://RESOURCE.openai.azure.com/openai/v1", Auth: AuthAPIKey,
			Hint: "Put your resource’s name for RESOURCE. Models are the names of your deployments."},
		{ID: "bedrock", Title: "Amazon Bedrock", Provider: ProviderAnthropic, Platform: PlatformBedrock, BaseURL: "https://bedrock-runtime.REGION.amazonaws.com", Auth: AuthBearer,
			Models: []string{"*anthropic.*", "arn:aws*"},
			Hint:   "For Claude. The key is a Bedrock API key; or ACCESS_KEY_ID:SECRET_ACCESS_KEY, with the choice SigV4 below."},
		{ID: "groq", Title: "Groq", Provider: ProviderOpenAI, BaseURL: "https://api.groq.com/openai/v1", Auth: AuthBearer},
		{ID: "openrouter", Title: "OpenRouter", Provider: ProviderOpenAI, BaseURL: "https://openrouter.ai/api/v1", Auth: AuthBearer,
			Hint: "Its models are named like anthropic/claude-sonnet-4.5."},
		{ID: "vllm", Title: "vLLM", Provider: ProviderOpenAI, BaseURL: "http://localhost:8000/v1", Auth: AuthBearer, Private: true,
			Hint: "The key is what the server was started with: --api-key."},
		{ID: "ollama", Title: "Ollama", Provider: ProviderOpenAI, Both: true, BaseURL: "http://localhost:11434/v1", Auth: AuthBearer, Private: true,
			Hint: "It takes any key of eight characters or more and does not look at it."},
	}
}

// PresetOf returns the preset with an id; ok is false if unknown.
func PresetOf(id string) (preset Preset, ok bool) {
	all := Presets()
	i := slices.IndexFunc(all, func(preset Preset) bool { return preset.ID == id })
	if i < 0 {
		return Preset{}, false
	}
	return all[i], true
}
