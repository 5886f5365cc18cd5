package upstream_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

// hostilePaths returns paths that leave what they begin with, or that are not written as
// they are read.
func hostilePaths() []string {
	return []string{
		"/v1/../admin", "/v1/../../admin", "/v1/./messages", "/v1/..", "/v1/.", "/v1/files/../embeddings",
		"/v1/%2e%2e/admin", "/v1/%2E%2E/admin", "/v1/.%2e/admin", "/v1/%2e./admin", "/v1/..%2fadmin", "/v1/..%2Fadmin", "/v1%2f..%2fadmin",
		"/v1/%252e%252e/admin", "/v1/%25252e%25252e/admin", "/v1/..%252fadmin",
		`/v1/..\admin`, "/v1/..%5cadmin", "/v1/%2e%2e%5Cadmin", "/v1/..%255cadmin", `/v1/a\b`,
		"/v1/..;/admin", "/v1/..;a=b/admin", "/v1/..%3b/admin", "/v1/..%3Ba/admin", "/v1/;/../admin",
		"/v1/..%00/admin", "/v1/..%20/admin", "/v1/%20../admin", "/v1/..%09/admin", "/v1/.../admin",
		"/v1/%c0%ae%c0%ae/admin", "/v1/%ef%bc%8e%ef%bc%8e/admin", "/v1/%e2%80%a5/admin", "/v1/..%ef%bc%8fadmin", "/v1/..%e2%88%95admin",
		"/v1/%6dessages", "/v1/m%65ssages", "/v1/messages%00", "/v1/files%0d%0aX: y", "/v1/a%7Eb", "/v1/a%252Fb", "/v1/" + strings.Repeat("%25", 20_000) + "2e",
	}
}

// S16, S38: no request leaves the base path in any form; the provider is not even dialled.
func TestPathsThatLeaveTheBasePathAreNotSent(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	client := upstream.New(true)
	for _, path := range hostilePaths() {
		response, err := client.Send(t.Context(), upstream.Request{Method: http.MethodGet, Path: path + "?a=b", Header: http.Header{}}, upstream.Target{BaseURL: server.URL, Key: providerKey})
		if err == nil {
			_ = response.Body.Close()
		}
		if !errors.Is(err, upstream.ErrPath) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, model := range []string{"..", ".", "../../admin", `..\admin`, "a/../b", "..;/x", "%2e%2e/x"} {
		_, err := client.Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/chat/completions", Header: http.Header{}}, upstream.Target{BaseURL: server.URL + "/deployments/{model}", Key: providerKey, Model: model})
		if _, invalid := errors.AsType[tenants.Invalid](err); !invalid {
			t.Errorf("model %s: %v", model, err)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the provider was asked %d times", asked.Load())
	}
	for _, path := range []string{
		"/v1/files/a%2Fb", "/v1/models/ft:gpt-4o:org::id", "/v1/models/ft%3Agpt%3Aorg", "/v1/models/claude-opus-4-6%5B1m%5D", "/v1/models/meta%2Fllama-3.1", "/v1/files/..hidden", "/v1/files/a..b", "/v1/models/caf%C3%A9", "/v1/models/100%25",
	} {
		response, err := client.Send(t.Context(), upstream.Request{Method: http.MethodGet, Path: path, Header: http.Header{}}, upstream.Target{BaseURL: server.URL, Key: providerKey})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		_ = response.Body.Close()
	}
}

// S14, S38: methods that make a server repeat the request, or that no provider has, are not
// sent.
func TestOnlyMethodsOfTheProvidersAPIsAreSent(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	for _, method := range []string{http.MethodTrace, http.MethodConnect, http.MethodOptions, "TRACK", "PROPFIND", "trace", "get", ""} {
		_, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: method, Path: "/v1/files", Header: http.Header{}}, upstream.Target{BaseURL: server.URL, Key: providerKey})
		if !errors.Is(err, upstream.ErrMethod) {
			t.Errorf("%q: %v", method, err)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the provider was asked %d times", asked.Load())
	}
}
