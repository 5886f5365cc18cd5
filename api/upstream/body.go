package upstream

import (
	"bytes"
	"io"
	"sync"
)

// body is a request's body that frees its bytes when they are no longer needed, because the transport keeps
// the request for as long as its answer streams.
type body struct {
	mu       sync.Mutex
	reader   *bytes.Reader // nil once the bytes are gone
	content  []byte
	answered bool   // no other connection will be tried
	gone     func() // called when the bytes are gone; may be nil
}

func newBody(content []byte, gone func()) *body {
	return &body{reader: bytes.NewReader(content), content: content, gone: gone}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader == nil {
		return 0, io.EOF
	}
	n, err := b.reader.Read(p)
	b.letGo()
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error { return nil }

// again returns the body from its start, for a connection that was dead before anything was sent.
func (b *body) again() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader == nil {
		return nil, io.ErrUnexpectedEOF
	}
	b.gone = nil // two goroutines read the bytes now, and it is unknown who is the last
	return newBody(b.content, nil), nil
}

// done says that the provider has answered. The rest of the body is still sent, because a provider may answer
// before it has read everything.
func (b *body) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered = true
	b.letGo()
}

func (b *body) letGo() {
	if b.answered && b.reader != nil && b.reader.Len() == 0 {
		b.reader, b.content = nil, nil
		if b.gone != nil {
			b.gone()
		}
	}
}
