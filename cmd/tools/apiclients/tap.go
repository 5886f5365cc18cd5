package apiclients

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
)

// errorLimit is the maximum number of bytes kept of a refusal.
const errorLimit = 4 << 10

// Exchange is one request of a client and the proxy's answer.
type Exchange struct {
	Method, Path string
	Header       http.Header
	Body         []byte // as the client sent it
	Status       int
	Answered     http.Header
	Refusal      string // start of the body of an answer with status 400 or above
}

// Compression is the proxy's compression header.
func (e Exchange) Compression() string { return e.Answered.Get("X-Palimpsest-Compression") }

// isEpoch reports whether the proxy shortened older turns for this request, even if less than intended.
func (e Exchange) isEpoch() bool {
	switch e.Compression() {
	case "", "none", "frozen", "bypassed", "unreachable":
		return number(e.Answered.Get("X-Palimpsest-Archived")) > 0
	default:
		return true
	}
}

// clientName returns the proxy's name for the client; "" if the exchange carries no conversation.
func (e Exchange) clientName() string {
	if e.Method != http.MethodPost {
		return ""
	}
	path, _, _ := strings.Cut(e.Path, "?")
	codec, known := formats.AtPath(path)
	if !known && e.isGeneration() {
		codec, known = formats.Recognize(e.Body) // clouds have paths of their own
	}
	if !known {
		return ""
	}
	body, err := wire.Open(e.Body, codec.List())
	if err != nil {
		return ""
	}

	return client.Classify(e.Header, codec.Traits().Path, body).Client
}

// unchanged reports whether the proxy says that it sent the request on unchanged: it compressed no content
// and injected no tokens.
func (e Exchange) unchanged() bool {
	return e.Compression() == "none" && e.Answered.Get("X-Palimpsest-Answered-From") == "" && e.Answered.Get("X-Palimpsest-Tokens-Before") == e.Answered.Get("X-Palimpsest-Tokens-After")
}

// tap is a proxy between a client and the real proxy, and records the exchanges. The client gets its
// address.
type tap struct {
	relay *httputil.ReverseProxy

	mu        sync.Mutex
	exchanges []*Exchange
}

func newTap(program string) (*tap, error) {
	target, err := url.Parse(program)
	if err != nil {
		return nil, fmt.Errorf("address of the program: %w", err)
	}

	return &tap{relay: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // some cases cut streams
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // the client sees the same as without the tap
		},
	}}, nil
}

// ServeHTTP implements http.Handler.
func (t *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	exchange := &Exchange{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body, Answered: http.Header{}}
	t.mu.Lock()
	t.exchanges = append(t.exchanges, exchange)
	t.mu.Unlock()

	t.relay.ServeHTTP(&tapped{ResponseWriter: w, tap: t, exchange: exchange}, r)
}

// all returns the exchanges so far, oldest first.
func (t *tap) all() []Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	passed := make([]Exchange, 0, len(t.exchanges))
	for _, exchange := range t.exchanges {
		passed = append(passed, *exchange)
	}

	return passed
}

// tapped is a response to a client through a tap.
type tapped struct {
	http.ResponseWriter

	tap      *tap
	exchange *Exchange
}

// Unwrap lets http.ResponseController flush and hijack.
func (t *tapped) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (t *tapped) WriteHeader(status int) {
	t.tap.mu.Lock()
	t.exchange.Status, t.exchange.Answered = status, t.Header().Clone()
	t.tap.mu.Unlock()
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *tapped) Write(text []byte) (int, error) {
	t.tap.mu.Lock()
	if t.exchange.Status >= http.StatusBadRequest {
		room := max(0, errorLimit-len(t.exchange.Refusal))
		t.exchange.Refusal += string(text[:min(room, len(text))])
	}
	t.tap.mu.Unlock()

	return t.ResponseWriter.Write(text)
}

// lacksKey reports whether a client asked without a key: the recall server, to learn how to sign in, or for the models
// of Amazon Bedrock, where Claude Code has no key for the list when told to skip the sign-in.
func (e Exchange) lacksKey() bool {
	isAsked := e.Path == "/mcp" || strings.HasPrefix(e.Path, "/inference-profiles")

	return isAsked && e.Status == http.StatusUnauthorized && e.Header.Get("Authorization") == ""
}

// isGeneration reports whether an exchange asks a model for an answer.
func (e Exchange) isGeneration() bool {
	path, _, _ := strings.Cut(e.Path, "?")

	return e.Method == http.MethodPost && generations.MatchString(path) && !strings.HasSuffix(path, "/count-tokens:rawPredict")
}

// generations matches the paths that ask a model for an answer, of each API and each cloud.
var generations = regexp.MustCompile(`/(messages|chat/completions|responses|invoke|invoke-with-response-stream)$|/models/[^/:]*:(generateContent|streamGenerateContent|rawPredict|streamRawPredict)$`)

// Interface guard.
var _ http.Handler = (*tap)(nil)
