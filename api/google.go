package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// googleServer serves clients that speak the protocol of Google Cloud's Agent Platform for Claude's models, such as
// Claude Code with CLAUDE_CODE_USE_VERTEX.
type googleServer struct{ *Server }

// register adds the routes of Google Cloud. A base URL may end in /v1.
func (s googleServer) register(e *echo.Echo) {
	for _, base := range []string{"", "/v1"} {
		e.Any(base+"/projects/*", s.other)
		e.POST(base+"/projects/*", s.run)
	}
}

// run serves a request in Google Cloud's form: with the model of its path, its body becomes one of POST /v1/messages,
// which goes through the pipeline to one of the workspace's keys of Google Cloud. Project and location are the
// key's. Answers and errors are those of Anthropic's API, as on Google Cloud.
func (s googleServer) run(c echo.Context) error {
	request := onPlatform(c, tenants.PlatformGoogle)
	model, counts, ok := upstream.GoogleModelIn(request.URL.EscapedPath())
	if !ok {
		return s.other(c)
	}
	codec := anthropic.New()
	path, purpose := codec.Traits().Path, converse
	body := &platformBody{request: request.Body, encoding: encodingOf(request.Header)}
	if counts {
		path, purpose = codec.Traits().CountPath, measure
	} else {
		body.added = append(wire.AppendQuote([]byte(`"model":`), model), ',')
	}
	request.Body, request.ContentLength = body, -1
	request.Header.Del("Content-Encoding")
	request.URL.Path, request.URL.RawPath = path, ""
	return s.exchange(codec, path, purpose)(c)
}

// other refuses an operation of Google Cloud that has no place here.
func (s googleServer) other(c echo.Context) error {
	return s.refusePlatform(platform{
		name: "This operation of Google Cloud", status: http.StatusBadRequest, errors: vertexError,
		instead: "Palimpsest serves POST …/publishers/anthropic/models/MODEL:rawPredict, :streamRawPredict and count-tokens:rawPredict below /projects/PROJECT/locations/LOCATION.",
	}, "/projects/*")(c)
}
