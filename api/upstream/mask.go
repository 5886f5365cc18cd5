package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// mask stars a key out of a provider's error, in headers and body: there are those
// that repeat what they refuse. Everything else, and the length, stays as it is.
func mask(response *http.Response, key string) {
	if response.StatusCode < http.StatusBadRequest || key == "" {
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
	held       []byte // read but not handed on yet
	clean      int    // bytes of held that no part of the key can begin in
	failure    error  // that ended the reading
}

// Read implements io.Reader. Bytes wait only where they are the beginning of the key.
func (m *maskedBody) Read(p []byte) (int, error) {
	for m.clean == 0 && m.failure == nil {
		chunk := make([]byte, max(len(p), len(m.key)))
		n, err := m.ReadCloser.Read(chunk)
		m.held, m.failure = append(m.held, chunk[:n]...), err
		m.held = bytes.ReplaceAll(m.held, m.key, m.stars)
		m.clean = len(m.held)
		if m.failure == nil {
			m.clean -= m.begun()
		}
	}
	if m.clean == 0 {
		return 0, m.failure
	}
	n := copy(p, m.held[:m.clean])
	m.held, m.clean = m.held[n:], m.clean-n
	return n, nil
}

// begun returns how many bytes at the end of what is held are the beginning of the key.
func (m *maskedBody) begun() int {
	for n := min(len(m.key)-1, len(m.held)); n > 0; n-- {
		if bytes.HasSuffix(m.held, m.key[:n]) {
			return n
		}
	}
	return 0
}
