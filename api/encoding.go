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

// errUnknownEncoding says that a content encoding cannot be read.
var errUnknownEncoding = errors.New("content encoding is not known")

// maxCodings bounds how many codings lie in each other.
const maxCodings = 3

// maxZstdWindow is the largest window of zstd that is read, in bytes: what its command line makes with
// --long.
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

// decodedReader returns a reader of what encoded holds. It reads no further than
// it has to, so that what has come of a stream can be read.
func decodedReader(encoding string, encoded io.Reader) (io.ReadCloser, error) {
	codings := codingsOf(encoding)
	if len(codings) > maxCodings {
		return nil, errUnknownEncoding
	}
	reader := io.NopCloser(encoded)
	for i, coding := range slices.Backward(codings) {
		within := io.Reader(reader)
		if i < len(codings)-1 {
			within = io.LimitReader(reader, maxDecoded) // no coding of anything that is taken is as long
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

// inflater undoes deflate, which is zlib's format by the standard and, of some clients, what that
// holds without its header.
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

// decoded returns at most limit bytes of what encoded holds.
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

// Providers are asked for plain answers. What follows is for those that encode
// them all the same.

// decodeFor has an encoded answer go out plain where its client does not take the
// encoding, or where something is to be taken out of it.
func decodeFor(client http.Header, response *http.Response, filtered bool) {
	encoding := encodingOf(response.Header)
	if !isEncoding(encoding) || !isReadable(encoding) || !filtered && accepts(client, encoding) {
		return
	}
	decode(response, encoding)
}

// plainly has an answer go out plain, and the key starred out of it, where the provider
// has encoded it: nothing can be looked for in encoded bytes. It returns errUnknownEncoding
// for one that cannot be read.
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

// decode has an encoded answer go out plain.
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

// isEncoding reports whether a content encoding is one.
func isEncoding(encoding string) bool { return len(codingsOf(encoding)) > 0 }

// accepts reports whether a client takes an encoding.
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

// lazyDecoder is the plain body of an encoded answer. It begins to decode when it
// is read: the provider may have said nothing yet.
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

// tapOf returns the tap of an answer that is relayed as it comes, encoded or not.
func tapOf(codec wire.Codec, response *http.Response) wire.Tap {
	tap := codec.Tap(isEventStream(response))
	if encoding := encodingOf(response.Header); isEncoding(encoding) {
		return &encodedTap{tap: tap, encoding: encoding}
	}
	return tap
}

// maxDecoded bounds what is read of an encoded answer, in bytes.
const maxDecoded = 256 << 20

// encodedTap keeps an encoded answer, up to wire.MaxAnswer bytes, and reads it
// once it has ended.
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

// Answer implements wire.Tap. Of an answer that ended early it reads what has come.
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

// withoutUsage returns what takes the usage out of a stream whose client did not
// ask for it; nil if nothing is to be taken out.
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
