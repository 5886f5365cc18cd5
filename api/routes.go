package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// The endpoints that go through the pipeline.
const (
	messagesPath  = "/v1/messages"
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
)

// The endpoints beside them.
const (
	countPath       = messagesPath + "/count_tokens"
	inputTokensPath = responsesPath + "/input_tokens"
	compactPath     = responsesPath + "/compact"
	helloPath       = "/api/hello"
)

// Register adds the proxy's routes.
func (s *Server) Register(e *echo.Echo) {
	e.Pre(s.canonicalPath)
	e.POST(messagesPath, s.exchange(anthropic.New(), messagesPath, converse))
	e.POST(chatPath, s.exchange(openaichat.New(), chatPath, converse))
	e.POST(responsesPath, s.exchange(openairesponses.New(), responsesPath, converse))
	e.POST(countPath, s.exchange(anthropic.New(), countPath, measure))
	e.POST(inputTokensPath, s.exchange(openairesponses.New(), inputTokensPath, measure))
	e.POST(compactPath, s.exchange(openairesponses.New(), compactPath, summarize))
	e.GET(responsesPath, s.websocket)
	e.GET(modelsPath, s.models)
	e.GET(modelsPath+"/*", s.models)
	e.GET("/v1/pipeline", s.pipeline)
	s.refusePlatforms(e)
	e.Match(upstream.Methods(), "/v1/*", s.passthrough)
	if s.Recall != nil {
		e.Any(mcpPath, s.recall)
	}
	e.HEAD(helloPath, hello)
	e.GET(helloPath, hello)
}

// dialect returns the codec whose errors a client understands.
func (s *Server) dialect(request *http.Request) wire.Codec {
	if request.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(request.URL.Path, messagesPath) {
		return anthropic.New()
	}
	return openaichat.New()
}

// websocket answers clients that try the WebSocket transport first: at 426 they
// fall back to plain requests at once.
func (s *Server) websocket(c echo.Context) error {
	if c.Request().Header.Get("Upgrade") == "" {
		return s.passthrough(c)
	}
	c.Response().Header().Set("X-Should-Retry", "false")
	return c.Blob(http.StatusUpgradeRequired, echo.MIMEApplicationJSON, openairesponses.New().Error(wire.Problem{
		Status: http.StatusUpgradeRequired, Type: "invalid_request_error", Code: "websocket_unsupported",
		Message: "The WebSocket transport is not supported. Send POST /v1/responses.",
	}))
}

// hello answers the warm-up request of Claude Code.
func hello(c echo.Context) error { return c.NoContent(http.StatusOK) }
