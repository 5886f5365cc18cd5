package api

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
)

// platform is an API that clients can be set to, but Palimpsest doesn't support. Its requests are refused in
// its own shape, before authentication, since an unread request must not reach a provider with a stored key.
type platform struct {
	name   string
	paths  []string
	status int // at which its clients show the error's text at once
	errors func(problem wire.Problem) []byte

	instead string // advice for its clients; "" means supported
}

// supported is advice for a client of another platform.
const supported = "Palimpsest serves Anthropic Messages (/v1/messages), OpenAI Chat Completions (/v1/chat/completions), OpenAI Responses (/v1/responses) and the Gemini API (/v1beta/models/MODEL:generateContent, /v1beta/interactions). Set the client up for one of these; docs/clients.md says how."

func platforms() []platform {
	// At 404, Claude Code takes the model for missing, tries all others it knows, and does not show the
	// message.
	const badRequest = http.StatusBadRequest
	return []platform{
		{name: "This API of Google Vertex AI", paths: []string{"/projects", "/v1beta1/projects/*", "/publishers/*"}, status: badRequest, errors: vertexError},
		{name: "This version of the Gemini API", paths: []string{"/v1alpha/*", "/v1beta1/*"}, status: badRequest, errors: googleError, instead: "Palimpsest serves /v1beta/models/MODEL:generateContent. Set the client's API version to v1beta."},
		{name: "Azure OpenAI below /openai/deployments", paths: []string{"/openai/deployments/*", "/deployments/*"}, status: http.StatusNotFound, errors: openAIError},
		{name: "Ollama", paths: []string{"/api/generate", "/api/chat", "/api/tags", "/api/embed", "/api/show"}, status: http.StatusNotFound, errors: ollamaError},
	}
}

// refusePlatforms adds routes for the unsupported APIs.
func (s *Server) refusePlatforms(e *echo.Echo) {
	for _, platform := range platforms() {
		for _, path := range platform.paths {
			e.Any(path, s.refusePlatform(platform, path))
			// The client's base URL may end in /v1.
			e.Any("/v1"+path, s.refusePlatform(platform, path))
		}
	}
}

// refusePlatform answers a request to an unsupported API.
func (s *Server) refusePlatform(platform platform, path string) echo.HandlerFunc {
	return func(c echo.Context) error {
		request, event := s.receive(c, path)
		event.outcome.refused(platform.status, "unsupported_api", nil)
		defer s.end(request.Context(), event)
		sign(c.Response().Header(), event)
		c.Response().Header().Set("X-Should-Retry", "false")
		return c.Blob(platform.status, echo.MIMEApplicationJSON, platform.errors(wire.Problem{
			Status: platform.status, Type: "not_found_error", Code: "unsupported_api",
			Message: platform.name + " is not supported. " + cmp.Or(platform.instead, supported), RequestID: event.ID.String(),
		}))
	}
}

// openAIError is an error in the shape of OpenAI's API, which Azure shares.
func openAIError(problem wire.Problem) []byte { return formats.Default().Error(problem) }

// vertexError is an error that both Google's clients and Anthropic's for Vertex can read.
func vertexError(problem wire.Problem) []byte {
	return fmt.Appendf(nil, `{"type":"error","error":{"type":"invalid_request_error","message":%s,"code":400,"status":"INVALID_ARGUMENT"},"request_id":%s}`,
		wire.Quote(problem.Message), wire.Quote(problem.RequestID))
}

// googleError is an error in the shape of Google's APIs (cloud.google.com/apis/design/errors).
func googleError(problem wire.Problem) []byte {
	return fmt.Appendf(nil, `{"error":{"code":400,"message":%s,"status":"INVALID_ARGUMENT"}}`, wire.Quote(problem.Message))
}

// bedrockError is an error in the shape of Amazon Bedrock's runtime
// (docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html).
func bedrockError(problem wire.Problem) []byte {
	kind := "InternalServerException"
	switch problem.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = "AccessDeniedException"
	case http.StatusNotFound:
		kind = "ResourceNotFoundException"
	case http.StatusTooManyRequests:
		kind = "ThrottlingException"
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		kind = "ModelTimeoutException"
	case http.StatusServiceUnavailable:
		kind = "ServiceUnavailableException"
	default:
		if problem.Status < http.StatusInternalServerError {
			kind = "ValidationException"
		}
	}
	return fmt.Appendf(nil, `{"__type":%s,"message":%s}`, wire.Quote(kind), wire.Quote(problem.Message))
}

// ollamaError is an error in the shape of Ollama's own API, whose clients show the member
// as it is (docs.ollama.com/api/errors).
func ollamaError(problem wire.Problem) []byte {
	return fmt.Appendf(nil, `{"error":%s}`, wire.Quote(problem.Message))
}
