package api

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/prompt"
)

// maxBody is the largest request body that is taken, in bytes, encoded and
// decoded: the providers' own limit for messages.
const maxBody = 32 << 20

// readBody reads a request's body, decoded.
func readBody(request *http.Request) ([]byte, error) {
	if request.ContentLength > maxBody {
		return nil, errBodyTooLarge
	}
	reader, err := decoder(request)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	var body bytes.Buffer
	if request.ContentLength > 0 {
		body.Grow(int(request.ContentLength) + bytes.MinRead)
	}
	read, err := body.ReadFrom(io.LimitReader(reader, maxBody+1))
	if err != nil {
		return nil, prompt.BodyError{Cause: fmt.Errorf("it broke off or is not encoded as declared: %w", err)}
	}
	if read > maxBody {
		return nil, errBodyTooLarge
	}
	return body.Bytes(), nil
}

// decoder undoes the body's content encoding.
func decoder(request *http.Request) (io.ReadCloser, error) {
	limited := http.MaxBytesReader(nil, request.Body, maxBody+1)
	switch request.Header.Get("Content-Encoding") {
	case "", "identity":
		return limited, nil
	case "gzip":
		reader, err := gzip.NewReader(limited)
		if err != nil {
			return nil, prompt.BodyError{Cause: errors.New("it is not valid gzip")}
		}
		return reader, nil
	case "zstd":
		reader, err := zstd.NewReader(limited, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, prompt.BodyError{Cause: errors.New("it is not valid zstd")}
		}
		return reader.IOReadCloser(), nil
	default:
		return nil, errEncoding
	}
}
