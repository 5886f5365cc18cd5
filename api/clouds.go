package api

import (
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
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

// bedrockAnswer gives an answer the form that Amazon Bedrock has: streams become event streams with checksums, and
// a count of tokens has another name. Everything else passes as it is.
type bedrockAnswer struct {
	http.ResponseWriter

	isCount  bool
	isStream bool
	split    wire.Splitter
	encoder  *eventstream.Encoder
	count    []byte // an answer with a count, until end writes it
	status   int
}

// WriteHeader implements http.ResponseWriter.
func (a *bedrockAnswer) WriteHeader(status int) {
	header := a.Header()
	a.status = status
	switch a.isStream = status == http.StatusOK && isStream(header.Get("Content-Type")); {
	case a.isStream:
		a.encoder = eventstream.NewEncoder()
		header.Set("Content-Type", upstream.EventStream)
		header.Set("X-Amzn-Bedrock-Content-Type", "application/json")
		header.Del("Content-Length")
	case a.isCount && status == http.StatusOK:
		header.Del("Content-Length")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *bedrockAnswer) Write(p []byte) (int, error) {
	switch {
	case a.isCount && a.status == http.StatusOK:
		a.count = append(a.count, p...)
		return len(p), nil
	case !a.isStream:
		return a.ResponseWriter.Write(p) //nolint:wrapcheck // it stands for the writer
	}
	var failure error
	a.split.Write(p, func(event wire.Event) {
		if failure == nil {
			failure = a.encoder.Encode(a.ResponseWriter, messageOf(event))
		}
	})
	if failure != nil {
		return 0, fmt.Errorf("write event stream: %w", failure)
	}
	return len(p), nil
}

// end writes a count.
func (a *bedrockAnswer) end() error {
	if a.count == nil {
		return nil
	}
	_, err := a.ResponseWriter.Write(append(append([]byte(`{"inputTokens":`), wire.Get(a.count, "input_tokens")...), '}'))
	if err != nil {
		return fmt.Errorf("write count: %w", err)
	}
	return nil
}

// Unwrap returns the writer below, for http.ResponseController.
func (a *bedrockAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// messageOf returns the message of an event stream for an event of Anthropic's API.
func messageOf(event wire.Event) eventstream.Message {
	var message eventstream.Message
	set := func(name, value string) { message.Headers.Set(name, eventstream.StringValue(value)) }
	set(eventstreamapi.ContentTypeHeader, "application/json")
	if wire.Text(event.Data, "type") == "error" {
		name, payload := upstream.ExceptionOf(event.Data)
		set(eventstreamapi.MessageTypeHeader, eventstreamapi.ExceptionMessageType)
		set(eventstreamapi.ExceptionTypeHeader, name)
		message.Payload = payload
		return message
	}
	set(eventstreamapi.MessageTypeHeader, eventstreamapi.EventMessageType)
	set(eventstreamapi.EventTypeHeader, "chunk")
	message.Payload = append(base64.StdEncoding.AppendEncode([]byte(`{"bytes":"`), event.Data), `"}`...)
	return message
}

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
