package api

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"palimpsest/api/connections"
	"palimpsest/api/proxysettings"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/prompt"
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

// relayed is the common prefix of the providers' endpoints.
const relayed = "/v1/"

// canonicalPath gives each request of the providers' APIs its one canonical path, for routing, limits,
// records and the provider. It accepts the paths that clients build from their base URL. It refuses paths
// that could mean another path to a server behind us, and methods that are not relayed.
func (s *Server) canonicalPath(next echo.HandlerFunc) echo.HandlerFunc {
	known := endpointsOf(formats.All())
	return func(c echo.Context) error {
		asked := c.Request().URL
		escaped := asked.EscapedPath()
		if strings.HasPrefix(singleSlashes(escaped), geminiRoot) {
			moveKey(c.Request())
		}
		path := known.canonical(escaped)
		if !strings.HasPrefix(path, relayed) {
			asked.Path, asked.RawPath = rewritten(asked, escaped, path)
			return next(c)
		}
		if err := known.check(c.Request().Method, path); err != nil {
			return s.refuseAtOnce(c, err)
		}
		asked.Path, asked.RawPath = rewritten(asked, escaped, path)
		return next(c)
	}
}

// endpoints are the paths whose requests are parsed before they are relayed.
type endpoints []string

// endpointsOf returns the endpoints of formats, and the list of models.
func endpointsOf(codecs []wire.Codec) endpoints {
	paths := endpoints{modelsPath}
	for _, codec := range codecs {
		traits := codec.Traits()
		if traits.Root != "" {
			continue // geminiServer checks its paths itself
		}
		for _, path := range []string{traits.Path, traits.CountPath, traits.CompactPath} {
			if path != "" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// check returns upstream.ErrMethod or upstream.ErrPath for a request that is not relayed. A path that only a
// lenient server takes for one of our endpoints would bypass the pipeline and its limits.
func (e endpoints) check(method, path string) error {
	if err := upstream.CheckMethod(method); err != nil {
		return err
	}
	if slices.Contains(e, path) {
		return nil
	}
	if err := upstream.CheckPath(path); err != nil {
		return err
	}
	if slices.Contains(e, e.canonical(upstream.Reading(path))) {
		return upstream.ErrPath
	}
	return nil
}

// rewritten returns the plain and the escaped form of a path for a URL whose path changes.
func rewritten(asked *url.URL, before, path string) (plain, escaped string) {
	if path == before {
		return asked.Path, asked.RawPath
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return path, ""
	}
	return plain, path
}

// canonical normalizes the paths that clients build from their base URL: "/anthropic" and "/openai" in front,
// a missing or doubled "/v1", doubled slashes, a trailing slash.
func (e endpoints) canonical(path string) string {
	single := singleSlashes(path)
	trimmed := single
	for _, prefix := range []string{"/anthropic", "/openai"} {
		if rest, ok := strings.CutPrefix(single, prefix); ok && strings.HasPrefix(rest, "/") {
			trimmed = rest
		}
	}
	for strings.HasPrefix(trimmed, "/v1/v1/") {
		trimmed = trimmed[len("/v1"):]
	}
	for _, endpoint := range e {
		bare, isBelow := strings.CutPrefix(endpoint, "/v1")
		if !isBelow {
			continue
		}
		if trimmed == bare || trimmed == bare+"/" || strings.HasPrefix(trimmed, bare+"/") && trimmed != single {
			trimmed = "/v1" + trimmed
			break
		}
	}
	if before, ok := strings.CutSuffix(trimmed, "/"); ok && slices.Contains(e, before) {
		return before
	}
	if trimmed == "/v1"+helloPath { // of a base URL that ends in "/v1"
		return helloPath
	}
	if trimmed == single && !strings.HasPrefix(trimmed, relayed) {
		return path // not one of the providers'
	}
	return trimmed
}

// singleSlashes returns a path without repeated slashes.
func singleSlashes(path string) string {
	if !strings.Contains(path, "//") {
		return path
	}
	var single strings.Builder
	for i := range len(path) {
		if path[i] != '/' || i == 0 || path[i-1] != '/' {
			single.WriteByte(path[i])
		}
	}
	return single.String()
}

// refuseAtOnce refuses a request before authentication.
func (s *Server) refuseAtOnce(c echo.Context, err error) error {
	request, event := s.receive(c, "/v1/*")
	defer s.end(request.Context(), event)
	if problem(err).Status == http.StatusMethodNotAllowed {
		c.Response().Header().Set(echo.HeaderAllow, strings.Join(upstream.Methods(), ", "))
	}
	return s.refuse(c, codecFor(request), event, err)
}

// passthrough relays any other request of the providers' APIs byte for byte. It
// is counted, but no module sees it.
func (s *Server) passthrough(c echo.Context) error {
	request, event := s.receive(c, "/v1/*")
	ctx := request.Context()
	codec := codecFor(request)
	defer s.end(ctx, event)

	admission, err := s.admit(request, event)
	if err == nil {
		err = admission.key.Limits.CheckRelay(request.URL.Path, isFree(request.Method))
	}
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	leave, err := s.Concurrency.enter(admission.key.Workspace)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	defer leave()
	dialect, err := s.dialectOf(request, admission, codec)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	if err := s.route(ctx, event, &admission, dialect, modelInPath(request, modelAhead(request))); err != nil {
		return s.refuse(c, codec, event, err)
	}
	event.Report.Compression = pipeline.Bypassed
	event.times.asked(s.Now())

	// A provider may answer before it has read everything.
	if err := http.NewResponseController(c.Response()).EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return s.refuse(c, codec, event, err)
	}
	event.Attempts = 1
	body := &heardBody{Reader: request.Body}
	response, err := s.Upstream.Send(ctx, upstream.Request{
		Method: request.Method, Path: pathAndQuery(request, request.URL.EscapedPath()), Header: request.Header,
		Stream: body, Length: request.ContentLength, Begun: &event.held.owes,
	}, admission.target)
	if body.isMalformed.Load() && (errors.Is(err, upstream.ErrUnreachable) || errors.Is(err, upstream.ErrUnanswered)) {
		err = prompt.BodyError{Cause: errors.New("it is not sent as its headers say")}
	}
	if err == nil {
		err = plainly(response, admission.target.Key)
	}
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	defer response.Body.Close()
	event.times.heard(s.Now())
	return finish(s.relay(c, event, response, ignore{}, nil, func() {}))
}

// heardBody is a relayed body. It knows whether its client broke the rules of HTTP, because the provider is
// not to blame for that.
type heardBody struct {
	io.Reader

	isMalformed atomic.Bool
}

// Read implements io.Reader.
func (h *heardBody) Read(into []byte) (int, error) {
	n, err := h.Reader.Read(into)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, connections.ErrSlow) {
		h.isMalformed.Store(true)
	}
	return n, err
}

// isFree reports whether requests of a method never run a model.
func isFree(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete}, method)
}

// dialectOf returns the dialect of a request: the codec's if the request brings a provider key or a version
// header, otherwise the codec's unless the workspace only has keys for another.
func (g *Gate) dialectOf(request *http.Request, admission admission, codec wire.Codec) (tenants.Provider, error) {
	wanted := proxysettings.ProviderOf(codec)
	if admission.asked.choice.Key != "" || saysVersion(request, codec) {
		return wanted, nil
	}
	return g.Settings.DialectFor(request.Context(), admission.key.Workspace, wanted)
}

// ignore is the tap of unread answers.
type ignore struct{}

func (ignore) Write(p []byte) (int, error) { return len(p), nil }
func (ignore) Answer() wire.Answer         { return wire.Answer{} }

var _ wire.Tap = ignore{}
