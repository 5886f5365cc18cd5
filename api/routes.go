package api

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// helloPath is the path that Claude Code requests to warm up its connection.
const helloPath = "/api/hello"

// Register adds the proxy's routes.
func (s *Server) Register(e *echo.Echo) {
	e.Pre(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return s.Origins.serve(c, next) }
	}, s.canonicalPath)
	for _, codec := range formats.All() {
		if codec.Traits().Root == "" {
			s.registerFormat(e, codec)
		}
	}
	geminiServer{s}.register(e)
	e.GET(modelsPath, s.models)
	e.GET(modelsPath+"/*", s.models)
	e.GET("/v1/pipeline", s.pipeline)
	bedrockServer{s}.register(e)
	googleServer{s}.register(e)
	s.refusePlatforms(e)
	e.Match(upstream.Methods(), "/v1/*", s.passthrough)
	if s.Recall != nil {
		e.Any(mcpPath, s.recall)
	}
	e.HEAD(helloPath, hello)
	e.GET(helloPath, hello)
}

// registerFormat adds the routes of one wire format.
func (s *Server) registerFormat(e *echo.Echo, codec wire.Codec) {
	traits := codec.Traits()
	e.POST(traits.Path, s.exchange(codec, traits.Path, converse))
	if traits.CountPath != "" {
		e.POST(traits.CountPath, s.exchange(codec, traits.CountPath, measure))
	}
	if traits.CompactPath != "" {
		e.POST(traits.CompactPath, s.exchange(codec, traits.CompactPath, summarize))
	}
	if traits.HasWebSocket {
		e.GET(traits.Path, s.webSocket(codec))
	}
}

// codecFor returns the codec for errors to a client.
func codecFor(request *http.Request) wire.Codec {
	switch platformIn(request.Context()) {
	case tenants.PlatformBedrock:
		return bedrockCodec{anthropic.New()}
	case tenants.PlatformGoogle:
		return anthropic.New()
	}
	for _, codec := range formats.All() {
		root := cmp.Or(codec.Traits().Root, codec.Traits().Path)
		if saysVersion(request, codec) || strings.HasPrefix(request.URL.Path, root) {
			return codec
		}
	}
	return formats.Default()
}

// saysVersion reports whether a request has the version header of a format's API.
func saysVersion(request *http.Request, codec wire.Codec) bool {
	header := codec.Traits().VersionHeader
	return header != "" && request.Header.Get(header) != ""
}

// webSocket answers clients that try the WebSocket transport first with 426, so that they fall back to plain
// requests at once.
func (s *Server) webSocket(codec wire.Codec) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().Header.Get("Upgrade") == "" {
			return s.passthrough(c)
		}
		c.Response().Header().Set("X-Should-Retry", "false")
		return c.Blob(http.StatusUpgradeRequired, echo.MIMEApplicationJSON, codec.Error(wire.Problem{
			Status: http.StatusUpgradeRequired, Type: "invalid_request_error", Code: "websocket_unsupported",
			Message: "The WebSocket transport is not supported. Send POST " + codec.Traits().Path + ".",
		}))
	}
}

// hello answers the warm-up request of Claude Code.
func hello(c echo.Context) error { return c.NoContent(http.StatusOK) }
