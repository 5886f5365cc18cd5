package api

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"palimpsest/api/connections"
	"palimpsest/api/proxysettings"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

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
	if err := s.route(ctx, event, &admission, dialect, modelAhead(request)); err != nil {
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
