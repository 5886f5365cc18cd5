package upstream

import (
	"net/http"

	"palimpsest/tenants"
)

// Dialect describes a provider's API, independent of a request.
type Dialect struct {
	BaseURL string       // the provider's own server
	Auth    tenants.Auth // how it takes its key

	// Header is for our own requests, because they have no client that sets a version.
	Header map[string]string

	// ModelsPath is the path of the list of models, ModelsList the member of its answer that holds them.
	ModelsPath, ModelsList string

	// ModelsQuery requests the whole list of models at once; "" if the list has no pages.
	ModelsQuery string
}

// DialectOf returns the dialect of a provider. known is false for an unsupported one.
func DialectOf(provider tenants.Provider) (dialect Dialect, known bool) {
	switch provider {
	case tenants.ProviderAnthropic:
		return Dialect{
			BaseURL: "https://api.anthropic.com", Auth: tenants.AuthXAPIKey,
			Header: map[string]string{"Anthropic-Version": "2023-06-01"}, ModelsPath: "/v1/models", ModelsList: "data", ModelsQuery: "limit=1000",
		}, true
	case tenants.ProviderOpenAI:
		return Dialect{BaseURL: "https://api.openai.com", Auth: tenants.AuthBearer, ModelsPath: "/v1/models", ModelsList: "data"}, true
	case tenants.ProviderGemini:
		return Dialect{
			BaseURL: "https://generativelanguage.googleapis.com", Auth: tenants.AuthGoogAPIKey,
			ModelsPath: "/v1beta/models", ModelsList: "models", ModelsQuery: "pageSize=1000",
		}, true
	default:
		return Dialect{}, false
	}
}

// AddTo sets missing headers for our own requests.
func (d Dialect) AddTo(header http.Header) {
	for name, value := range d.Header {
		if header.Get(name) == "" {
			header.Set(name, value)
		}
	}
}
