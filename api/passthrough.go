package api

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// passthrough relays any other request of the providers' APIs byte for byte. It
// is counted, but no module sees it.
func (s *Server) passthrough(c echo.Context) error {
	request := c.Request()
	ctx := request.Context()
	codec := s.dialect(request)
	event := s.begin(request, "/v1/*")
	defer s.end(ctx, event)

	key, err := s.authenticate(request, event)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	asked, err := readControls(request.Header)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	provider, err := s.providerFor(request, key, codec)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	target, err := s.Settings.target(ctx, key.Workspace, provider, asked)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	body, err := readBody(request)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	event.Provider = string(target.Provider)
	event.Report.Compression = pipeline.Bypassed
	event.Overhead = s.Now().Sub(event.At)

	event.Attempts = 1
	response, err := s.Upstream.Send(ctx, request.Method, pathAndQuery(request, request.URL.EscapedPath()), request.Header, body, target)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	defer response.Body.Close()
	event.TTFB = s.Now().Sub(event.At) - event.Overhead
	return finish(s.relay(c, event, response, ignore{}))
}

// providerFor returns whose API a request belongs to: Anthropic's if it looks
// like it, else OpenAI's, else the only provider the workspace has a key for.
func (s *Server) providerFor(request *http.Request, key tenants.APIKey, codec wire.Codec) (tenants.Provider, error) {
	provider := providerOf(codec.Format())
	stored, err := s.Settings.providers(request.Context(), key.Workspace)
	if err != nil {
		return "", err
	}
	if slices.Contains(stored, provider) {
		return provider, nil
	}
	if len(stored) == 1 && request.Header.Get("Anthropic-Version") == "" {
		return stored[0], nil
	}
	return provider, nil
}

// ignore is the tap of answers that nobody reads.
type ignore struct{}

func (ignore) Write(p []byte) (int, error) { return len(p), nil }
func (ignore) Answer() wire.Answer         { return wire.Answer{} }

var _ wire.Tap = ignore{}
