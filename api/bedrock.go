package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// bedrockServer serves clients that speak Amazon Bedrock's protocol, such as Claude Code with
// CLAUDE_CODE_USE_BEDROCK.
type bedrockServer struct{ *Server }

// register adds the routes of Amazon Bedrock's runtime. A base URL may end in /v1.
func (s bedrockServer) register(e *echo.Echo) {
	for _, base := range []string{"", "/v1"} {
		e.Any(base+"/model/*", s.other)
		e.POST(base+"/model/*", s.run)
		for _, list := range []string{"/inference-profiles", "/inference-profiles/*", "/foundation-models", "/foundation-models/*"} {
			e.Any(base+list, s.other)
			e.GET(base+list, s.list)
		}
	}
}

// run serves a request in Amazon Bedrock's form: its body and its path become a request of POST /v1/messages,
// which goes through the pipeline to one of the workspace's keys of Amazon Bedrock. The answer gets Bedrock's form
// back.
func (s bedrockServer) run(c echo.Context) error {
	request := onPlatform(c, tenants.PlatformBedrock)
	model, operation, ok := upstream.ModelInPath(request.URL.EscapedPath())
	codec := bedrockCodec{anthropic.New()}
	path, purpose := codec.Traits().Path, converse
	switch {
	case ok && operation == "invoke", ok && operation == "invoke-with-response-stream":
	case ok && operation == "count-tokens":
		path, purpose = codec.Traits().CountPath, measure
	default:
		return s.other(c)
	}
	body := &platformBody{request: request.Body, encoding: encodingOf(request.Header)}
	if purpose == measure {
		body.inner = counted
	}
	body.added = append(wire.AppendQuote([]byte(`"model":`), model), ',')
	if operation == "invoke-with-response-stream" {
		body.added = append(body.added, `"stream":true,`...)
	}
	request.Body, request.ContentLength = body, -1
	request.Header.Del("Content-Encoding")
	request.URL.Path, request.URL.RawPath = path, ""
	answer := &bedrockAnswer{ResponseWriter: c.Response().Writer, isCount: purpose == measure}
	c.Response().Writer = answer
	if err := s.exchange(codec, path, purpose)(c); err != nil {
		return err
	}
	return answer.end()
}

// list relays a request for a list of models.
func (s bedrockServer) list(c echo.Context) error {
	onPlatform(c, tenants.PlatformBedrock)
	return s.passthrough(c)
}

// other refuses an operation of Amazon Bedrock that has no place here.
func (s bedrockServer) other(c echo.Context) error {
	return s.refusePlatform(platform{
		name: "This operation of Amazon Bedrock", status: http.StatusBadRequest, errors: bedrockError,
		instead: "Palimpsest serves invoke, invoke-with-response-stream and count-tokens below /model/MODEL, with the body of Claude's models.",
	}, "/model/*")(c)
}

// bedrockCodec is Anthropic's format with Amazon Bedrock's errors.
type bedrockCodec struct{ wire.Codec }

// Error implements wire.Codec.
func (bedrockCodec) Error(problem wire.Problem) []byte { return bedrockError(problem) }
