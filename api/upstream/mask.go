package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// Mask stars a key out of a provider's answer, in headers and body: there are servers
// that repeat what they were sent. Everything else, and the length, stays as it is. It
// does not see into encoded answers. Send has masked its target's key already.
func Mask(response *http.Response, key string) {
	if key == "" {
		return
	}
	stars := strings.Repeat("*", len(key))
	for _, values := range response.Header {
		for i, value := range values {
			values[i] = strings.ReplaceAll(value, key, stars)
		}
	}
	response.Body = &maskedBody{ReadCloser: response.Body, key: []byte(key), stars: []byte(stars)}
}

// maskedBody is a body without a key that it may hold.
type maskedBody struct {
	io.ReadCloser

	key, stars []byte
	begun      []byte // read but not handed on: the key may begin with it
	ready      []byte // masked, to be handed on next
	failure    error  // that ended the reading
}

// Read implements io.Reader. Bytes wait only where they are the beginning of the key.
func (m *maskedBody) Read(p []byte) (int, error) {
	for len(p) > 0 {
		switch {
		case len(m.ready) > 0:
			n := copy(p, m.ready)
			m.ready = m.ready[n:]
			return n, nil
		case m.failure != nil:
			return 0, m.failure
		case len(m.begun) > 0:
			m.ready = m.readBehind(len(p))
		default:
			n, err := m.ReadCloser.Read(p)
			m.failure = err
			if n = m.clean(p[:n]); n > 0 {
				return n, nil
			}
		}
	}
	return 0, nil
}

// readBehind reads at most so many bytes behind those that wait, and returns what of
// all of them can be handed on.
func (m *maskedBody) readBehind(limit int) []byte {
	chunk := make([]byte, len(m.begun)+limit)
	waiting := copy(chunk, m.begun)
	n, err := m.ReadCloser.Read(chunk[waiting:])
	m.failure = err
	return chunk[:m.clean(chunk[:waiting+n])]
}

// clean stars the key out of a chunk and returns how much of it can be handed on. The
// rest, with which the key may begin, waits.
func (m *maskedBody) clean(chunk []byte) int {
	for rest := chunk; ; {
		i := bytes.Index(rest, m.key)
		if i < 0 {
			break
		}
		rest = rest[i+copy(rest[i:], m.stars):]
	}
	waiting := 0
	if m.failure == nil {
		waiting = m.beginning(chunk)
	}
	done := len(chunk) - waiting
	m.begun = append(m.begun[:0], chunk[done:]...)
	return done
}

// beginning returns how many bytes at the end of a chunk are the beginning of the key.
func (m *maskedBody) beginning(chunk []byte) int {
	for n := min(len(m.key)-1, len(chunk)); n > 0; n-- {
		if bytes.HasSuffix(chunk, m.key[:n]) {
			return n
		}
	}
	return 0
}
