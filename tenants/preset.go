package tenants

import (
	"slices"
	"strings"
	"sync"
)

// Platform is a cloud that offers a provider's models at its own addresses and with its own sign-in. "" is the
// provider itself.
type Platform string

// The platforms whose requests have another form than the provider's own.
const (
	PlatformBedrock Platform = "bedrock" // Amazon Bedrock
	PlatformGoogle  Platform = "google"  // Google Cloud's Agent Platform, formerly Vertex AI
)

// Preset is a known provider: its URL and how it takes its key.
type Preset struct {
	ID       string
	Title    string
	Provider Provider // dialect of its requests
	Both     bool     // it accepts Anthropic's dialect and OpenAI's
	Platform Platform // its requests have another form than its dialect's
	BaseURL  string   // "" for the dialect's own; words in capitals are placeholders
	Auth     Auth
	Auths    []Auth   // the possible values of Auth; empty for the ways to send a key in a header
	Service  string   // name of the service in signatures of AWS
	Needs    string   // name of a header that its keys must bring along; optional
	NoList   bool     // it has no list of models
	Models   []string // for a key without models of its own
	Private  bool     // it runs on a private address, so that private base URLs must be allowed
	Hint     string   // instructions for the user; optional
}

// Presets returns the known providers. The first three define the dialects that the others speak. Sources:
//
//   - Anthropic: https://docs.anthropic.com/en/api/overview (x-api-key)
//   - OpenAI: https://platform.openai.com/docs/api-reference/authentication (bearer token)
//   - Google Gemini: https://ai.google.dev/api (x-goog-api-key)
//   - Azure OpenAI: https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
//     (the v1 API at https://RESOURCE.openai.azure.com/openai/v1/, header api-key, no
//     api-version); before it, a path for each deployment and ?api-version=:
//     https://learn.microsoft.com/azure/ai-foundry/openai/reference
//   - Amazon Bedrock: https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys-use.html (bearer token) and
//     https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html
//   - Microsoft Foundry: https://platform.claude.com/docs/en/build-with-claude/claude-in-microsoft-foundry
//     (Messages below /anthropic, x-api-key or a token of Entra ID, no list of models)
//   - Claude Platform on AWS: https://docs.aws.amazon.com/claude-platform/latest/userguide/making-requests.html
//     (Messages, anthropic-workspace-id, x-api-key or a signature for aws-external-anthropic)
//   - Google Cloud: https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai (rawPredict, a token of a
//     service account), and Anthropic's own offer there: https://claude.googleapis.com (Messages, the same token)
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
		{ID: "gemini", Title: "Google Gemini", Provider: ProviderGemini},
		{ID: "azure", Title: "Azure OpenAI", Provider: ProviderOpenAI, BaseURL: "https://RESOURCE.openai.azure.com/openai/v1", Auth: AuthAPIKey,
			Auths: []Auth{AuthAPIKey, AuthEntra, AuthBearer},
			Hint:  "Put your resource’s name for RESOURCE. Models are the names of your deployments."},
		{ID: "bedrock", Title: "Amazon Bedrock", Provider: ProviderAnthropic, Platform: PlatformBedrock, BaseURL: "https://bedrock-runtime.REGION.amazonaws.com", Auth: AuthBearer,
			Auths: []Auth{AuthBearer, AuthSigV4}, Service: "bedrock", Models: []string{"*anthropic.*", "arn:aws*"},
			Hint: "For Claude. The key is a Bedrock API key; or ACCESS_KEY_ID:SECRET_ACCESS_KEY, with the choice SigV4 below."},
		{ID: "claude-aws", Title: "Claude Platform on AWS", Provider: ProviderAnthropic, BaseURL: "https://aws-external-anthropic.REGION.api.aws", Auth: AuthXAPIKey,
			Auths: []Auth{AuthXAPIKey, AuthSigV4}, Service: "aws-external-anthropic", Needs: "anthropic-workspace-id",
			Hint: "Name your workspace under More headers: anthropic-workspace-id: wrkspc_…"},
		{ID: "foundry", Title: "Claude in Microsoft Foundry", Provider: ProviderAnthropic, BaseURL: "https://RESOURCE.services.ai.azure.com/anthropic", Auth: AuthXAPIKey,
			Auths: []Auth{AuthXAPIKey, AuthEntra}, NoList: true,
			Hint: "Put your resource’s name for RESOURCE. Models are the names of your deployments; list them under Models."},
		{ID: "google", Title: "Claude on Google Cloud (Vertex AI)", Provider: ProviderAnthropic, Platform: PlatformGoogle,
			BaseURL: "https://aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION", Auth: AuthGoogle, Auths: []Auth{AuthGoogle}, NoList: true,
			Hint: "The key is the JSON file of a service account’s key; PROJECT becomes its project. Models are named like claude-sonnet-4-5@20250929."},
		{ID: "claude-google", Title: "Claude Platform on Google Cloud", Provider: ProviderAnthropic,
			BaseURL: "https://claude.googleapis.com/v1/projects/PROJECT/locations/REGION/workspaces/WORKSPACE/invoke", Auth: AuthGoogle, Auths: []Auth{AuthGoogle},
			Hint: "The key is the JSON file of a service account’s key; PROJECT becomes its project. Put your workspace’s id for WORKSPACE."},
		{ID: "groq", Title: "Groq", Provider: ProviderOpenAI, BaseURL: "https://api.groq.com/openai/v1", Auth: AuthBearer},
		{ID: "openrouter", Title: "OpenRouter", Provider: ProviderOpenAI, BaseURL: "https://openrouter.ai/api/v1", Auth: AuthBearer,
			Hint: "Its models are named like anthropic/claude-sonnet-4.5."},
		{ID: "vllm", Title: "vLLM", Provider: ProviderOpenAI, BaseURL: "http://localhost:8000/v1", Auth: AuthBearer, Private: true,
			Hint: "The key is what the server was started with: --api-key."},
		{ID: "ollama", Title: "Ollama", Provider: ProviderOpenAI, Both: true, BaseURL: "http://localhost:11434/v1", Auth: AuthBearer, Private: true,
			Hint: "It takes any key of eight characters or more and does not look at it."},
	}
}

// HasRegion reports whether keys of the preset have a region.
func (p Preset) HasRegion() bool { return strings.Contains(p.BaseURL, "REGION") }

// OnGoogle reports whether its regions are locations of Google Cloud, not regions of AWS.
func (p Preset) OnGoogle() bool { return p.Auth == AuthGoogle }

// presets are Presets for reading. Every request looks up that of its provider key.
var presets = sync.OnceValue(Presets)

// PresetOf returns the preset with an id; ok is false if unknown.
func PresetOf(id string) (preset Preset, ok bool) {
	all := presets()
	i := slices.IndexFunc(all, func(preset Preset) bool { return preset.ID == id })
	if i < 0 {
		return Preset{}, false
	}
	return all[i], true
}
