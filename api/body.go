package api

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"net/http"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"palimpsest/api/connections"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

// maxBody is the size of the largest accepted request body, in bytes, encoded and decoded. It is the
// providers' own limit for messages.
const maxBody = 32 << 20

// requestBody is a request's body. Its memory is reused after all holders have released it; if one forgets
// to, the garbage collector frees it.
type requestBody struct {
	bytes   []byte
	holders atomic.Int32
	pool    *sync.Pool   // nil if the memory is not reused
	sealed  *requestBody // the prompt made from it; nil if it is the prompt itself, or its memory is not reused
}

// seal makes a body of a prompt in lent memory.
func (c *requestBody) seal(prompt []byte) {
	if c.sealed != nil {
		c.sealed.bytes = prompt
	}
}

// holder returns the body with exactly the bytes of a prompt: this one or the one made from it. It is nil if
// neither has them.
func (c *requestBody) holder(prompt []byte) *requestBody {
	for _, held := range []*requestBody{c, c.sealed} {
		if held != nil && held.is(prompt) {
			return held
		}
	}
	return nil
}

// done says that the request no longer needs the body and the prompt.
func (c *requestBody) done() {
	c.release()
	if c.sealed != nil {
		c.sealed.release()
	}
}

// hold adds a holder of the bytes.
func (c *requestBody) hold() { c.holders.Add(1) }

// release removes a holder, which no longer reads the bytes.
func (c *requestBody) release() {
	if c.holders.Add(-1) != 0 || c.pool == nil {
		return
	}
	if poison {
		clear(c.bytes)
	}
	c.pool.Put(&c.bytes)
}

// is reports whether the body shares the bytes of other.
func (c *requestBody) is(other []byte) bool {
	return len(other) > 0 && len(other) == len(c.bytes) && &other[0] == &c.bytes[0]
}

// bodies reuse the memory of bodies, by size: pool i holds memory of minBody<<i bytes.
type bodies [12]sync.Pool

// minBody is the smallest body, in bytes, whose memory is reused.
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

// firstBody is the initial memory of a body before any of it has arrived, whatever its announced size.
const firstBody = 1 << 20

// read reads a body of a size, or -1 if that is unknown. It allocates at most one and a half times a body's
// limit, and grows the memory as the body arrives, after take has allowed that many bytes more. It returns
// errBodyTooLarge, and the errors of take.
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

// readBody reads a request's body, decoded. The caller releases it. Its bytes count for the key's workspace
// and account until leave is called.
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

// drain reads the rest of a refused body, within limits, because a client doesn't see the answer while it is
// still sending. A client that waits for permission to send doesn't get it.
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

// Errors for limits that a body exceeds while it is read.
var (
	errWorkspaceBytes = errors.New("workspace has too many bytes in flight")
	errAccountBytes   = errors.New("account has too many bytes in flight")
	errProcessBytes   = errors.New("process has too many bytes in flight")
)

// isBytes reports whether an error is about too many bytes in flight.
func isBytes(err error) bool {
	return errors.Is(err, errWorkspaceBytes) || errors.Is(err, errAccountBytes) || errors.Is(err, errProcessBytes)
}

// timesFree bounds an account, with all of its workspaces, to this multiple of the free bytes. So one account
// at its limit leaves a quarter, and several leave some.
const timesFree = 3

// Bytes bounds the bytes of request bodies in flight in this process, per workspace, per account and in
// total. A body counts from its arrival until the provider has answered.
type Bytes struct {
	ofWorkspace, ofAll int

	heap *pressure

	mu   sync.Mutex
	all  int
	held map[uuid.UUID]int // by workspace, and by account
}

// NewBytes returns a Bytes with a bound for each workspace and one for all.
func NewBytes(ofWorkspace, ofAll int) *Bytes {
	return &Bytes{ofWorkspace: ofWorkspace, ofAll: ofAll, heap: newPressure(), held: make(map[uuid.UUID]int)}
}

// hold starts to count the body of a key's request.
func (b *Bytes) hold(key tenants.APIKey) *heldBytes {
	return &heldBytes{of: b, workspace: uuid.UUID(key.Workspace), account: key.Account()}
}

// recordingBytes is roughly the memory for recording a message, beside its own bytes.
const recordingBytes = 1 << 10

// recording makes the garbage collector run more often while messages of a total size are recorded.
func (b *Bytes) recording(messages, size int) (done func()) {
	if b == nil || size+recordingBytes*messages < heavyBody {
		return func() {}
	}
	return b.heap.enter()
}

// heldBytes are the bytes of one body. It is for one goroutine at a time.
type heldBytes struct {
	of        *Bytes // optional: no bounds without it
	workspace uuid.UUID
	account   uuid.UUID
	count     int
	lighten   func() // nil while they are not heavy
}

// take counts more bytes, or returns errWorkspaceBytes, errAccountBytes or errProcessBytes.
func (h *heldBytes) take(more int) error {
	if h.of == nil {
		return nil
	}
	if err := h.add(more); err != nil {
		return err
	}
	if h.count >= heavyBody && h.lighten == nil {
		h.lighten = h.of.heap.enter()
	}
	return nil
}

// add counts more bytes.
func (h *heldBytes) add(more int) error {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.ofAll - b.all - more
	switch {
	case b.held[h.workspace]+more > b.ofWorkspace:
		return errWorkspaceBytes
	case free < 0:
		return errProcessBytes
	case b.held[h.account]+more > timesFree*free:
		return errAccountBytes
	}
	h.change(more)
	return nil
}

// change counts more bytes, or fewer, for the workspace, the account and the process.
func (h *heldBytes) change(more int) {
	h.count += more
	h.of.all += more
	who := []uuid.UUID{h.workspace, h.account}
	if h.account == h.workspace {
		who = who[:1]
	}
	for _, id := range who {
		if h.of.held[id] += more; h.of.held[id] == 0 {
			delete(h.of.held, id)
		}
	}
}

// leave stops counting the body. It may be called twice.
func (h *heldBytes) leave() {
	if h.of == nil {
		return
	}
	if h.lighten != nil {
		h.lighten()
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.change(-h.count)
}

const (
	// heavyBody is the size in bytes from which a request counts as heavy. A prompt of text alone does not
	// reach it.
	heavyBody = 8 << 20

	// heavyGrowth is how much the heap may grow between two collections while a heavy request is in flight,
	// in percent of the heap in use. Reading and recording such a body makes garbage of several times its
	// size.
	heavyGrowth = 10
)

// pressure makes the garbage collector run more often while heavy requests are in flight, so that one takes
// at most four times its size in memory.
type pressure struct {
	usual int // the collector's target without heavy requests

	mu    sync.Mutex
	heavy int
}

// newPressure returns a pressure for the process's garbage collector.
func newPressure() *pressure {
	target := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(target)
	return &pressure{usual: int(min(target[0].Value.Uint64(), math.MaxInt32))}
}

// enter counts a heavy request until leave is called; a second call of leave does nothing.
func (p *pressure) enter() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heavy++; p.heavy == 1 {
		debug.SetGCPercent(min(p.usual, heavyGrowth))
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.heavy--; p.heavy == 0 {
			debug.SetGCPercent(p.usual)
		}
	})
}
