package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// sendRaw sends a request whose path and method are not cleaned by any client, and
// returns its answer.
func (p *proxy) sendRaw(method, path, body string) *http.Response {
	p.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: palimpsest\r\nX-Api-Key: %s\r\nContent-Length: %d\r\n\r\n%s", method, path, testKey, len(body), body); err != nil {
		p.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	p.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// S16, S38: no form of a path gets around the pipeline and its limits or out of the base
// path, and no other method than those of the providers' APIs is relayed. Where a path
// means an endpoint, it goes there.
func TestNoPathGoesAroundThePipeline(t *testing.T) {
	t.Parallel()
	var relayed atomic.Int32
	p := setup(t, func(w http.ResponseWriter, request *http.Request) {
		relayed.Add(1)
		_, _ = fmt.Fprintf(w, `{"path":%q}`, request.RequestURI)
	})
	for _, path := range []string{
		"/v1/%6dessages", "/v1/m%65ssages", "/v1/%6Dessages", "/v1/chat%2fcompletions", "/v1/chat%2Fcompletions", "/v1/%72esponses",
		"/v1/%256dessages", "/v1/Messages", "/v1/MESSAGES", "/v1/Chat/Completions", "/v1/messages;a=b", "/v1/messages%3Ba", "/v1/messages%20", "/v1/%20messages",
		"/v1/messages%3Fbeta=true", "/v1/messages%23", "/v1/messages%2F", "/v1/%2Fmessages", "/v1/x/../messages", `/v1\messages`, `/v1/\messages`, "/v1/messages%00",
		"/v1/%EF%BD%8Dessages", "/anthropic/v1/%6dessages", "/openai/v1/%72esponses", "/v1/v1/%6dessages", "/v1/%76%31/messages", "/v1//%6dessages",
		"/v1/../../admin", "/v1/%2e%2e/%2e%2e/admin", "/v1/%2E%2E/admin", "/v1/..%5c..%5cadmin", `/v1/..\..\admin`, "/v1/..;/admin", "/v1/%252e%252e/admin", "/anthropic/v1/../admin", "/v1/./files",
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			response := p.sendRaw(method, path, smallBody)
			if response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: status %d", method, path, response.StatusCode)
			}
		}
	}
	for _, method := range []string{http.MethodTrace, http.MethodOptions, "TRACK", "PROPFIND", "FOO"} {
		for _, path := range []string{"/v1/files", "/v1/messages", "/openai/v1/files"} {
			response := p.sendRaw(method, path, "")
			if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") == "" {
				t.Errorf("%s %s: status %d, allow %q", method, path, response.StatusCode, response.Header.Get("Allow"))
			}
		}
	}
	if relayed.Load() > 0 {
		t.Fatalf("the provider was asked %d times", relayed.Load())
	}
	for path, endpoint := range map[string]string{
		"/v1/messages/": messagesPath, "//v1//messages": messagesPath, "/v1//chat/completions": chatPath, "/v1/v1//responses/": responsesPath, "/anthropic//v1/messages": messagesPath,
	} {
		before := relayed.Load()
		response := p.sendRaw(http.MethodPost, path, smallBody)
		if response.Header.Get("X-Palimpsest-Compression") == "bypassed" || response.Header.Get("X-Palimpsest-Session-Id") == "" {
			t.Errorf("%s is not taken for %s: status %d, %v", path, endpoint, response.StatusCode, response.Header)
		}
		if relayed.Load() != before+1 {
			t.Errorf("%s: not sent", path)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if response := p.sendRaw(method, "/openai/v1/files/a%2Fb", ""); response.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", method, response.StatusCode)
		}
	}
}

const smallBody = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hi"}],"input":"hi"}`

// S14, S38: the stored key is in no answer that a provider gives beside a conversation, nor
// in any error: not in headers, not in a stream that is cut inside it, not in an encoded
// answer.
func TestStoredKeyIsInNoRelayedAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"plain": func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("X-Request-Id", "for "+request.Header.Get("X-Api-Key"))
			_, _ = fmt.Fprint(w, request.Header)
		},
		"stream cut in the key": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, part := range strings.SplitAfter("data: "+providerKey+"\n\n", "") {
				_, _ = io.WriteString(w, part)
				_ = http.NewResponseController(w).Flush()
			}
		},
		"gzip": func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			if strings.HasPrefix(request.URL.Path, messagesPath) {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = io.WriteString(w, gzipped(t, "you sent "+providerKey))
		},
		"an unknown encoding": func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Encoding", "rot0")
			if strings.HasPrefix(request.URL.Path, messagesPath) {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = io.WriteString(w, providerKey)
		},
	} {
		p := setup(t, answer)
		for _, asked := range [][2]string{
			{http.MethodGet, "/v1/files"}, {http.MethodPost, "/v1/embeddings"}, {http.MethodGet, modelsPath}, {http.MethodPost, countPath}, {http.MethodPost, inputTokensPath},
			{http.MethodPost, compactPath}, {http.MethodPost, messagesPath},
		} {
			got := p.send(asked[0], asked[1], smallBody, "Accept-Encoding", "gzip, rot0", "Anthropic-Version", "2023-06-01")
			all := fmt.Sprint(got.header) + string(got.body)
			if strings.Contains(all, providerKey) || got.header.Get("Content-Encoding") != "" {
				t.Errorf("%s: %s: %d %s", name, asked[1], got.status, all)
			}
			if name != "an unknown encoding" && !strings.Contains(all, strings.Repeat("*", len(providerKey))) {
				t.Errorf("%s: %s: the rest of the answer is missing: %d %s", name, asked[1], got.status, all)
			}
		}
	}
}
