package api

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
)

// errUnknownEncoding is the error for an unsupported content encoding.
var errUnknownEncoding = errors.New("content encoding is not known")

// maxCodings bounds the depth of nested codings.
const maxCodings = 3

// maxZstdWindow is the largest zstd window that is read, in bytes. The zstd command line makes such windows
// with --long.
const maxZstdWindow = 128 << 20

// encodingOf returns the codings of a body as one value.
func encodingOf(header http.Header) string {
	return strings.Join(header.Values("Content-Encoding"), ",")
}

// codingsOf returns the codings of a content encoding in the order in which they were applied.
func codingsOf(encoding string) []string {
	var codings []string
	for coding := range strings.SplitSeq(strings.ToLower(encoding), ",") {
		switch coding = strings.TrimSpace(coding); coding {
		case "", "identity":
		default:
			codings = append(codings, strings.TrimPrefix(coding, "x-"))
		}
	}
	return codings
}

// decodedReader returns a reader of the decoded content of encoded. It reads no further than needed, so that
// the received part of a stream can be decoded.
func decodedReader(encoding string, encoded io.Reader) (io.ReadCloser, error) {
	codings := codingsOf(encoding)
	if len(codings) > maxCodings {
		return nil, errUnknownEncoding
	}
	reader := io.NopCloser(encoded)
	for i, coding := range slices.Backward(codings) {
		within := io.Reader(reader)
		if i < len(codings)-1 {
			within = io.LimitReader(reader, maxDecoded) // no accepted body is as long in any coding
		}
		var err error
		if reader, err = codingReader(coding, within); err != nil {
			return nil, err
		}
	}
	return reader, nil
}

// codingReader undoes one coding.
func codingReader(coding string, encoded io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "gzip":
		return gzip.NewReader(encoded)
	case "deflate":
		return inflater(encoded)
	case "zstd":
		reader, err := zstd.NewReader(encoded, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxZstdWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return reader.IOReadCloser(), nil
	case "br":
		return io.NopCloser(brotli.NewReader(encoded)), nil
	default:
		return nil, errUnknownEncoding
	}
}

// inflater decodes deflate. By the standard that is zlib's format, but some clients send it without zlib's
// header.
func inflater(encoded io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(encoded)
	head, err := buffered.Peek(2)
	if err != nil {
		return nil, fmt.Errorf("deflate: %w", err)
	}
	const method, multiple = 8, 31
	if head[0]&0x0f == method && (int(head[0])<<8|int(head[1]))%multiple == 0 {
		return zlib.NewReader(buffered)
	}
	return flate.NewReader(buffered), nil
}

// decoded returns at most limit bytes of encoded, decoded.
func decoded(encoding string, encoded []byte, limit int64) ([]byte, error) {
	reader, err := decodedReader(encoding, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	plain, err := io.ReadAll(io.LimitReader(reader, limit))
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return plain, nil
}

// Providers are asked for plain answers. The code below handles providers that encode them anyway.

// decodeFor decodes an encoded answer if its client does not accept the encoding, or if a filter has to
// change it.
func decodeFor(client http.Header, response *http.Response, filtered bool) {
	encoding := encodingOf(response.Header)
	if !isEncoding(encoding) || !isReadable(encoding) || !filtered && accepts(client, encoding) {
		return
	}
	decode(response, encoding)
}

// plainly makes an encoded answer plain and masks the key in it, because a key can't be found in encoded
// bytes. It returns errUnknownEncoding for an encoding that can't be read.
func plainly(response *http.Response, key string) error {
	encoding := encodingOf(response.Header)
	switch {
	case !isEncoding(encoding):
		return nil
	case !isReadable(encoding):
		_ = response.Body.Close()
		return errUnknownEncoding
	}
	decode(response, encoding)
	upstream.Mask(response, key)
	return nil
}

// decode makes an encoded answer plain.
func decode(response *http.Response, encoding string) {
	response.Body = &lazyDecoder{encoding: encoding, encoded: response.Body}
	response.Header.Del("Content-Encoding")
	response.ContentLength = -1
}

// isReadable reports whether decodedReader knows an encoding.
func isReadable(encoding string) bool {
	codings := codingsOf(encoding)
	return len(codings) <= maxCodings && !slices.ContainsFunc(codings, func(coding string) bool {
		return !slices.Contains([]string{"gzip", "deflate", "zstd", "br"}, coding)
	})
}

// isEncoding reports whether a content encoding encodes at all.
func isEncoding(encoding string) bool { return len(codingsOf(encoding)) > 0 }

// accepts reports whether a client accepts an encoding.
func accepts(client http.Header, encoding string) bool {
	for _, coding := range codingsOf(encoding) {
		if !acceptsCoding(client, coding) {
			return false
		}
	}
	return true
}

func acceptsCoding(client http.Header, coding string) bool {
	for _, line := range client.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, quality, _ := strings.Cut(part, ";")
			name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "x-")
			refused := strings.ReplaceAll(strings.TrimSpace(quality), " ", "")
			if (name == coding || name == "*") && refused != "q=0" && refused != "q=0.0" {
				return true
			}
		}
	}
	return false
}

// lazyDecoder is the plain body of an encoded answer. It starts to decode at the first read, because the
// provider may not have sent anything yet.
type lazyDecoder struct {
	encoding string
	encoded  io.ReadCloser
	plain    io.ReadCloser
}

// Read implements io.Reader.
func (d *lazyDecoder) Read(p []byte) (int, error) {
	if d.plain == nil {
		plain, err := decodedReader(d.encoding, d.encoded)
		if err != nil {
			return 0, fmt.Errorf("decode answer: %w", err)
		}
		d.plain = plain
	}
	n, err := d.plain.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("decode answer: %w", err)
	}
	return n, err
}

// Close implements io.Closer.
func (d *lazyDecoder) Close() error {
	if d.plain != nil {
		_ = d.plain.Close()
	}
	return d.encoded.Close()
}

// tapOf returns the tap for an answer as it is relayed, encoded or not.
func tapOf(codec wire.Codec, response *http.Response) wire.Tap {
	tap := codec.Tap(isEventStream(response))
	if encoding := encodingOf(response.Header); isEncoding(encoding) {
		return &encodedTap{tap: tap, encoding: encoding}
	}
	return tap
}

// maxDecoded bounds the decoded part of an encoded answer, in bytes.
const maxDecoded = 256 << 20

// encodedTap collects an encoded answer, up to wire.MaxAnswer bytes, and reads it at the end.
type encodedTap struct {
	tap      wire.Tap
	encoding string
	encoded  []byte
	isLong   bool
	isRead   bool
}

// Write implements wire.Tap.
func (t *encodedTap) Write(p []byte) (int, error) {
	if t.isLong || len(t.encoded)+len(p) > wire.MaxAnswer {
		t.isLong, t.encoded = true, nil
		return len(p), nil
	}
	t.encoded = append(t.encoded, p...)
	return len(p), nil
}

// Answer implements wire.Tap. If an answer ended early, it reads the received part.
func (t *encodedTap) Answer() wire.Answer {
	if !t.isRead && !t.isLong {
		t.isRead = true
		if reader, err := decodedReader(t.encoding, bytes.NewReader(t.encoded)); err == nil {
			_, _ = io.Copy(t.tap, io.LimitReader(reader, maxDecoded))
			_ = reader.Close()
		}
		t.encoded = nil
	}
	return t.tap.Answer()
}

// withoutUsage returns a filter for usage in a stream whose client didn't ask for it, or nil if the stream
// stays as it is.
func withoutUsage(codec wire.Codec, sent prompt.Sent, response *http.Response) wire.Filter {
	asker, is := codec.(wire.UsageAsker)
	if !is || !sent.AsksUsage || !isEventStream(response) {
		return nil
	}
	response.ContentLength = -1
	return asker.WithoutUsage()
}

// Interface guards.
var (
	_ wire.Tap      = (*encodedTap)(nil)
	_ io.ReadCloser = (*lazyDecoder)(nil)
)
