package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
)

// platform is an API that clients can be set to and that is not supported. Its requests
// are refused in its own shape, before anyone asks whose they are: what is not read must
// not reach a provider with a stored key.
type platform struct {
	name   string
	paths  []string
	errors func(message string) []byte
}

// supported says what a client of another platform can do.
const supported = "Palimpsest serves Anthropic Messages (/v1/messages), OpenAI Chat Completions (/v1/chat/completions) and OpenAI Responses (/v1/responses). Set the client up for one of these; docs/clients.md says how."

func platforms() []platform {
	return []platform{
		{"Amazon Bedrock", []string{"/model/*", "/inference-profiles", "/inference-profiles/*", "/foundation-models", "/foundation-models/*"}, bedrockError},
		{"Google Vertex AI", []string{"/projects", "/projects/*", "/v1beta1/projects/*", "/publishers/*"}, vertexError},
		{"the Gemini API", []string{"/v1beta/*", "/v1alpha/*", "/v1beta1/*"}, googleError},
		{"Azure OpenAI", []string{"/openai/deployments/*", "/deployments/*"}, openAIError},
		{"Ollama", []string{"/api/generate", "/api/chat", "/api/tags", "/api/embed", "/api/show"}, openAIError},
	}
}

// refusePlatforms adds the routes of what is not supported.
func (s *Server) refusePlatforms(e *echo.Echo) {
	for _, platform := range platforms() {
		for _, path := range platform.paths {
			e.Any(path, s.refusePlatform(platform, path))
			// The client's base URL may end in /v1.
			e.Any("/v1"+path, s.refusePlatform(platform, path))
		}
	}
}

// refusePlatform answers a request to an API that is not supported.
func (s *Server) refusePlatform(platform platform, path string) echo.HandlerFunc {
	body := platform.errors(platform.name + " is not supported. " + supported)
	return func(c echo.Context) error {
		event := s.begin(c.Request(), path)
		event.Status, event.ErrorFrom, event.ErrorType = http.StatusNotFound, "proxy", "unsupported_api"
		defer s.end(c.Request().Context(), event)
		c.Response().Header().Set("X-Should-Retry", "false")
		return c.Blob(http.StatusNotFound, echo.MIMEApplicationJSON, body)
	}
}

func unsupported(message string) wire.Problem {
	return wire.Problem{Status: http.StatusNotFound, Type: "not_found_error", Code: "unsupported_api", Message: message}
}

// openAIError is an error in the shape of OpenAI's API, which Azure and Ollama share.
func openAIError(message string) []byte { return openaichat.New().Error(unsupported(message)) }

// vertexError is an error that Google's clients and Anthropic's for Vertex both read.
func vertexError(message string) []byte {
	var both map[string]any
	if json.Unmarshal(anthropic.New().Error(unsupported(message)), &both) != nil {
		return googleError(message)
	}
	if detail, ok := both["error"].(map[string]any); ok {
		detail["code"], detail["status"] = http.StatusNotFound, "NOT_FOUND"
	}
	return encodedError(both)
}

// googleError is an error in the shape of Google's APIs
// (cloud.google.com/apis/design/errors).
func googleError(message string) []byte {
	return encodedError(map[string]any{"error": map[string]any{"code": http.StatusNotFound, "message": message, "status": "NOT_FOUND"}})
}

// bedrockError is an error in the shape of Amazon Bedrock's runtime
// (docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html).
func bedrockError(message string) []byte {
	return encodedError(map[string]any{"__type": "ResourceNotFoundException", "message": message})
}

func encodedError(body map[string]any) []byte {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(body) != nil { //nolint:errchkjson // strings, numbers, and maps of them
		return nil
	}
	return []byte(out.String())
}
