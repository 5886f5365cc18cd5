package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

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
	body := &bedrockBody{request: request.Body, encoding: encodingOf(request.Header), isCount: purpose == measure}
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

// platformKey is the context key for the platform whose form a request has.
type platformKey struct{}

// onPlatform notes the platform whose form a request has, and removes the part of the path before it.
func onPlatform(c echo.Context, platform tenants.Platform) *http.Request {
	request := c.Request().WithContext(context.WithValue(c.Request().Context(), platformKey{}, platform))
	request.URL.Path, request.URL.RawPath = strings.TrimPrefix(request.URL.Path, "/v1"), strings.TrimPrefix(request.URL.RawPath, "/v1")
	c.SetRequest(request)
	return request
}

// platformIn returns the platform whose form a request has; "" for the providers' own.
func platformIn(ctx context.Context) tenants.Platform {
	platform, _ := ctx.Value(platformKey{}).(tenants.Platform)
	return platform
}

// bedrockCodec is Anthropic's format with Amazon Bedrock's errors.
type bedrockCodec struct{ wire.Codec }

// Error implements wire.Codec.
func (bedrockCodec) Error(problem wire.Problem) []byte { return bedrockError(problem) }

// bedrockBody is the body of a request to Amazon Bedrock with members added at its start. It is read when the
// request has been admitted.
type bedrockBody struct {
	request  io.ReadCloser
	encoding string
	isCount  bool   // the body is inside a request to count its tokens
	added    []byte // ends with a comma

	reader io.Reader
}

// Read implements io.Reader.
func (b *bedrockBody) Read(p []byte) (int, error) {
	if b.reader == nil {
		if err := b.open(); err != nil {
			return 0, err
		}
	}
	return b.reader.Read(p)
}

// Close implements io.Closer.
func (b *bedrockBody) Close() error { return b.request.Close() }

// open reads up to the first member, which the added ones go in front of. All bytes of the client keep their
// order, so that the body is the client's again once the added members are removed.
func (b *bedrockBody) open() error {
	if !isReadable(b.encoding) {
		return errEncoding
	}
	decoded, err := decodedReader(b.encoding, b.request)
	if err != nil {
		return fmt.Errorf("decode body: %w", err)
	}
	reader := bufio.NewReader(decoded)
	if b.isCount {
		if reader, err = counted(reader); err != nil {
			return err
		}
	}
	var start []byte
	for braces := 0; ; {
		next, err := reader.ReadByte()
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		isSpace := strings.IndexByte(" \t\r\n", next) >= 0
		switch {
		case isSpace:
		case next == '{' && braces == 0:
			braces = 1
		case braces == 0:
			return errors.New("the body must be a JSON object")
		default:
			_ = reader.UnreadByte() // it has just been read
			b.reader = io.MultiReader(bytes.NewReader(start), bytes.NewReader(b.added), reader)
			return nil
		}
		start = append(start, next)
	}
}

// counted returns the body whose tokens a request of Amazon Bedrock counts.
func counted(request io.Reader) (*bufio.Reader, error) {
	whole, err := io.ReadAll(io.LimitReader(request, 2*maxBody))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	text, _ := wire.String(wire.Get(wire.Get(wire.Get(whole, "input"), "invokeModel"), "body"))
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(body) == 0 {
		return nil, errors.New("input.invokeModel.body must hold the body of a request in base64; input.converse is not served")
	}
	return bufio.NewReader(bytes.NewReader(body)), nil
}
