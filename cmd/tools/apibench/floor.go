package apibench

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Floor is the smallest proxy that could do the job: it reads the whole request, sends it on to the same
// path, and hands back the answer at each read. Its cost is the minimum for any proxy.
type Floor struct {
	upstream  *url.URL
	transport *http.Transport
	bodies    sync.Pool
}

// NewFloor returns a Floor in front of upstream.
func NewFloor(upstream *url.URL) *Floor {
	floor := &Floor{upstream: upstream, transport: newTransport()}
	floor.bodies.New = func() any { return bytes.NewBuffer(make([]byte, 0, 64<<10)) }

	return floor
}

// ServeHTTP implements http.Handler.
func (f *Floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, is := f.bodies.Get().(*bytes.Buffer)
	if !is {
		body = &bytes.Buffer{}
	}
	body.Reset()
	body.Grow(int(max(0, r.ContentLength)) + bytes.MinRead)
	if _, err := body.ReadFrom(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	out := r.Clone(r.Context())
	out.URL = &url.URL{Scheme: f.upstream.Scheme, Host: f.upstream.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	out.Host, out.RequestURI = f.upstream.Host, ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body.Bytes())), int64(body.Len())
	answer, err := f.transport.RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return // don't reuse body, because the transport may still read it
	}
	defer func() { _ = answer.Body.Close() }()

	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	if relay(w, answer.Body) == nil {
		f.bodies.Put(body)
	}
}

// relay copies an answer, and flushes a stream after each read.
func relay(w http.ResponseWriter, answer io.Reader) error {
	control := http.NewResponseController(w)
	stream := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
	var buffer [16 << 10]byte
	for {
		n, err := answer.Read(buffer[:])
		if n > 0 {
			if _, writeErr := w.Write(buffer[:n]); writeErr != nil {
				return writeErr
			}
			if stream {
				_ = control.Flush() // the next write fails if the client is gone
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// newTransport returns a transport that keeps every connection open.
func newTransport() *http.Transport {
	return &http.Transport{
		MaxIdleConns:        4096,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      16 << 10,
	}
}
