package api

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"sync"
	"sync/atomic"

	"palimpsest/api/connections"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

// maxBody is the largest request body that is taken, in bytes, encoded and
// decoded: the providers' own limit for messages.
const maxBody = 32 << 20

// requestBody is a request's body. Its memory is used again once all who hold it
// have released it; one who forgets to leaves it to the garbage collector.
type requestBody struct {
	bytes   []byte
	holders atomic.Int32
	pool    *sync.Pool   // nil: the memory is not used again
	sealed  *requestBody // the prompt that was made of it; nil if it is the prompt itself, or its memory is not used again
}

// seal makes a body of a prompt for which memory was lent.
func (c *requestBody) seal(prompt []byte) {
	if c.sealed != nil {
		c.sealed.bytes = prompt
	}
}

// holder returns who holds the very bytes of a prompt, the body or what was made of it;
// nil: neither.
func (c *requestBody) holder(prompt []byte) *requestBody {
	for _, held := range []*requestBody{c, c.sealed} {
		if held != nil && held.is(prompt) {
			return held
		}
	}
	return nil
}

// done says that the request needs neither the body nor the prompt any more.
func (c *requestBody) done() {
	c.release()
	if c.sealed != nil {
		c.sealed.release()
	}
}

// hold says that someone more needs the bytes.
func (c *requestBody) hold() { c.holders.Add(1) }

// release says that one who held the bytes no longer reads them.
func (c *requestBody) release() {
	if c.holders.Add(-1) != 0 || c.pool == nil {
		return
	}
	if poison {
		clear(c.bytes)
	}
	c.pool.Put(&c.bytes)
}

// is reports whether the body is the very bytes of other.
func (c *requestBody) is(other []byte) bool {
	return len(other) > 0 && len(other) == len(c.bytes) && &other[0] == &c.bytes[0]
}

// bodies keep the memory of bodies for the next ones, by size: pool i holds
// memory of minBody<<i bytes.
type bodies [12]sync.Pool

// minBody is the smallest body, in bytes, whose memory is used again.
const minBody = 16 << 10

// get returns memory for a body of a size.
func (b *bodies) get(size int) *requestBody {
	body := &requestBody{}
	body.holders.Store(1)
	class := bits.Len(uint(size-1) / minBody)
	if size < minBody || class >= len(b) {
		body.bytes = make([]byte, size)
		return body
	}
	body.pool = &b[class]
	if memory, ok := body.pool.Get().(*[]byte); ok {
		body.bytes = (*memory)[:size]
		return body
	}
	body.bytes = make([]byte, size, minBody<<class)
	return body
}

// firstBody is the memory that a body gets before anything of it has come, whatever size it
// says it will have.
const firstBody = 1 << 20

// read reads a body of a size, -1 if that is not known, in memory that is never more than
// one and a half times what a body may have. Memory comes as the body does, after take has
// allowed so many bytes more. It returns errBodyTooLarge, and what take does.
func (b *bodies) read(reader io.Reader, size int, take func(more int) error) (*requestBody, error) {
	length := minBody
	if size >= 0 {
		length = min(size, firstBody)
	}
	if err := take(length); err != nil {
		return nil, err
	}
	body, read := b.get(length), 0
	for read < size || size < 0 {
		if read == len(body.bytes) {
			larger := min(4*read, size)
			if size < 0 {
				larger = min(2*read, maxBody+1)
			}
			if err := take(larger - read); err != nil {
				body.release()
				return nil, err
			}
			body = b.grown(body, larger)
		}
		n, err := reader.Read(body.bytes[read:])
		read += n
		switch {
		case read > maxBody:
			body.release()
			return nil, errBodyTooLarge
		case errors.Is(err, io.EOF) && (size < 0 || read == size):
			body.bytes = body.bytes[:read]
			return body, nil
		case errors.Is(err, io.EOF):
			body.release()
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			body.release()
			return nil, err
		}
	}
	return body, nil
}

// grown returns a body with memory of a larger size.
func (b *bodies) grown(body *requestBody, size int) *requestBody {
	larger := b.get(size)
	copy(larger.bytes, body.bytes)
	body.release()
	return larger
}

// readBody reads a request's body, decoded. The caller releases it. Its bytes count as those
// of a key's workspace and account until leave is called.
func (s *Server) readBody(request *http.Request, key tenants.APIKey) (body *requestBody, leave func(), err error) {
	_, span := spans.Start(request.Context(), "read body")
	defer span.EndWith(&err)
	if request.ContentLength > maxBody {
		drain(request)
		return nil, nil, errBodyTooLarge
	}
	reader, err := decoder(request)
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	size := -1
	if request.ContentLength > 0 && !isEncoding(encodingOf(request.Header)) {
		size = int(request.ContentLength)
	}
	held := s.Bytes.hold(key)
	if body, err = s.bodies.read(reader, size, held.take); err == nil {
		span.Int(spans.BodyBytes, len(body.bytes))
		return body, held.leave, nil
	}
	held.leave()
	switch {
	case errors.Is(err, errBodyTooLarge), isBytes(err):
		drain(request)
		return nil, nil, err
	case errors.Is(err, connections.ErrSlow):
		return nil, nil, connections.ErrSlow
	default:
		return nil, nil, prompt.BodyError{Cause: fmt.Errorf("it ended early or is not encoded as declared: %w", err)}
	}
}

// drain takes what is left of a body that is refused, within limits: a client that
// is still sending would not see the answer. One that waits for leave to send is
// not given it.
func drain(request *http.Request) {
	if request.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, request.Body, 2*maxBody)
	}
}

// decoder undoes the body's content encoding.
func decoder(request *http.Request) (io.ReadCloser, error) {
	encoding := encodingOf(request.Header)
	if !isReadable(encoding) {
		return nil, errEncoding
	}
	reader, err := decodedReader(encoding, http.MaxBytesReader(nil, request.Body, maxBody+1))
	if err != nil {
		return nil, prompt.BodyError{Cause: errors.New("it is not valid " + encoding)}
	}
	return reader, nil
}
