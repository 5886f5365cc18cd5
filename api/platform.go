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

	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

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

// platformBody is the body of a request in a cloud's own form, or of an API with a model in its path,
// with members added at its start. It is read when the
// request has been admitted.
type platformBody struct {
	request  io.ReadCloser
	encoding string
	added    []byte // ends with a comma

	// inner returns the body inside a decoded request; optional.
	inner func(request io.Reader) (io.Reader, error)

	reader io.Reader
}

// Read implements io.Reader.
func (b *platformBody) Read(p []byte) (int, error) {
	if b.reader == nil {
		if err := b.open(); err != nil {
			return 0, err
		}
	}
	return b.reader.Read(p)
}

// Close implements io.Closer.
func (b *platformBody) Close() error { return b.request.Close() }

// open reads up to the first member, which the added ones go in front of. All bytes of the client keep their
// order, so that the body is the client's again once the added members are removed.
func (b *platformBody) open() error {
	if !isReadable(b.encoding) {
		return errEncoding
	}
	decoded, err := decodedReader(b.encoding, b.request)
	if err != nil {
		return fmt.Errorf("decode body: %w", err)
	}
	plain := io.Reader(decoded)
	if b.inner != nil {
		if plain, err = b.inner(decoded); err != nil {
			return err
		}
	}
	reader := bufio.NewReader(plain)
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
func counted(request io.Reader) (io.Reader, error) {
	whole, err := io.ReadAll(io.LimitReader(request, 2*maxBody))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	text, _ := wire.String(wire.Get(wire.Get(wire.Get(whole, "input"), "invokeModel"), "body"))
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(body) == 0 {
		return nil, errors.New("input.invokeModel.body must hold the body of a request in base64; input.converse is not served")
	}
	return bytes.NewReader(body), nil
}
