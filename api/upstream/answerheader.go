package upstream

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
)

// answered lists the headers of providers that clients get: descriptions of the answer, inputs of SDKs
// (retries, limits, request ids), and ids for support. No other header passes because answers share the
// dashboard's origin: Clear-Site-Data, Set-Cookie, Refresh, Access-Control-* or a policy would act on the
// dashboard, X-Accel-* on a proxy before us.
var answered = [...]string{
	"Accept-Ranges", "Age", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Range",
	"Content-Type", "Date", "Deprecation", "Digest", "Etag", "Expires", "Last-Modified", "Location", "Operation-Location", "Sunset", "Vary",
	"Retry-After", "Retry-After-Ms", "X-Should-Retry", "Ratelimit", "Ratelimit-Policy", "Allow",
	"Request-Id", "X-Request-Id", "X-Client-Request-Id", "Apim-Request-Id", "Mistral-Correlation-Id", "X-Correlation-Id",
	"X-Cloud-Trace-Context", "Traceparent", "Cf-Ray", "X-Models-Etag", "X-Reasoning-Included", "Nvcf-Reqid", "Nvcf-Status",
}

// answeredPrefixes are prefixes of further such headers: the providers' own names.
var answeredPrefixes = [...]string{
	"Anthropic-", "Openai-", "X-Openai-", "X-Codex-", "Ratelimit-", "X-Ratelimit-", "X-Ms-", "Azureml-", "X-Groq-", "X-Goog-",
	"X-Amzn-", "X-Litellm-", "Helicone-", "X-Openrouter-", "Fireworks-", "X-Together-", "X-Kong-Request-",
}

// CopyResponseHeader adds the allowed headers of a provider to an answer. It takes over from. It forbids
// browsers to guess the content type.
func CopyResponseHeader(to, from http.Header) {
	removeConnectionHeaders(from)
	for name, values := range from {
		if isAnswered(name) {
			to[name] = values
		}
	}
	to.Set("X-Content-Type-Options", "nosniff")
}

func isAnswered(name string) bool {
	return slices.Contains(answered[:], name) ||
		slices.ContainsFunc(answeredPrefixes[:], func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Mask replaces a key in a provider's answer by stars, in headers and body, because some servers repeat the
// request. Everything else, and the length, stays as it is. It does not see into encoded answers. Send has
// masked its target's key already.
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

// maskedBody is a body with a key masked.
type maskedBody struct {
	io.ReadCloser

	key, stars []byte
	begun      []byte // read but not passed on: it may be the beginning of the key
	ready      []byte // masked, to be passed on next
	failure    error  // cause of the end of reading
}

// Read implements io.Reader. It only holds bytes back that may be the beginning of the key.
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

// readBehind reads up to limit bytes behind the waiting ones, and returns the part of all of them that can be
// passed on.
func (m *maskedBody) readBehind(limit int) []byte {
	chunk := make([]byte, len(m.begun)+limit)
	waiting := copy(chunk, m.begun)
	n, err := m.ReadCloser.Read(chunk[waiting:])
	m.failure = err
	return chunk[:m.clean(chunk[:waiting+n])]
}

// clean masks the key in a chunk and returns how much of it can be passed on. The rest, which may begin the
// key, waits.
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

// beginning returns how many bytes at the end of a chunk may begin the key.
func (m *maskedBody) beginning(chunk []byte) int {
	for n := min(len(m.key)-1, len(chunk)); n > 0; n-- {
		if bytes.HasSuffix(chunk, m.key[:n]) {
			return n
		}
	}
	return 0
}
