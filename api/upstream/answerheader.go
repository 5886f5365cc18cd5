package upstream

import (
	"net/http"
	"slices"
	"strings"
)

// answered lists the headers of providers that clients get: descriptions of the answer, inputs of SDKs
// (retries, limits, request ids), and ids for support. No other header passes because answers share the
// dashboard's origin: Clear-Site-Data, Set-Cookie, Refresh, Access-Control-* or a policy would act on the
// dashboard, X-Accel-* on a proxy before us.
var answered = [...]string{
	"Accept-Ranges", "Age", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Range",
	"Content-Type", "Date", "Deprecation", "Digest", "Etag", "Expires", "Last-Modified", "Location", "Operation-Location", "Sunset", "Vary",
	"Retry-After", "Retry-After-Ms", "X-Should-Retry", "Ratelimit", "Ratelimit-Policy", "Allow",
	"Request-Id", "X-Request-Id", "X-Client-Request-Id", "Apim-Request-Id", "Mistral-Correlation-Id", "X-Correlation-Id",
	"X-Cloud-Trace-Context", "Traceparent", "Cf-Ray", "X-Models-Etag", "X-Reasoning-Included", "Nvcf-Reqid", "Nvcf-Status",
}

// answeredPrefixes are prefixes of further such headers: the providers' own names.
var answeredPrefixes = [...]string{
	"Anthropic-", "Openai-", "X-Openai-", "X-Codex-", "Ratelimit-", "X-Ratelimit-", "X-Ms-", "Azureml-", "X-Groq-", "X-Goog-",
	"X-Amzn-", "X-Litellm-", "Helicone-", "X-Openrouter-", "Fireworks-", "X-Together-", "X-Kong-Request-",
}

// CopyResponseHeader adds the allowed headers of a provider to an answer. It takes over from. It forbids
// browsers to guess the content type.
func CopyResponseHeader(to, from http.Header) {
	removeConnectionHeaders(from)
	for name, values := range from {
		if isAnswered(name) {
			to[name] = values
		}
	}
	to.Set("X-Content-Type-Options", "nosniff")
}

func isAnswered(name string) bool {
	return slices.Contains(answered[:], name) ||
		slices.ContainsFunc(answeredPrefixes[:], func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
