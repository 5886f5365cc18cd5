package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

func TestAQuestionOfOurOwnGoesWithTheWorkspacesKey(t *testing.T) {
	t.Parallel()
	arrived := make(chan *http.Request, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		request.Body = io.NopCloser(strings.NewReader(string(body)))
		arrived <- request
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "data: x\n\n")
	}))
	t.Cleanup(server.Close)
	for provider, header := range map[tenants.Provider]string{tenants.ProviderAnthropic: "X-Api-Key", tenants.ProviderOpenAI: "Authorization"} {
		answer, err := upstream.Ask(t.Context(), upstream.New(true), upstream.Question{
			Path: "/v1/messages", Header: map[string]string{"Anthropic-Beta": "a,b"}, Body: []byte(`{"a":1}`),
		}, upstream.Target{Provider: provider, BaseURL: server.URL, Key: providerKey})
		if err != nil || answer.Status != http.StatusTooManyRequests || !answer.Stream || string(answer.Body) != "data: x\n\n" {
			t.Errorf("%s: %+v, %v", provider, answer, err)
		}
		request := <-arrived
		body, _ := io.ReadAll(request.Body)
		if !strings.Contains(request.Header.Get(header), providerKey) || string(body) != `{"a":1}` || request.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v: %s", provider, request.Header, body)
		}
		if isAnthropic := provider == tenants.ProviderAnthropic; (request.Header.Get("Anthropic-Version") != "") != isAnthropic || request.Header.Get("Anthropic-Beta") != "a,b" {
			t.Errorf("%s: %v", provider, request.Header)
		}
	}
}

func TestAnAnswerThatBreaksOffIsNone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/long" {
			for range 17 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
			return
		}
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	}))
	t.Cleanup(server.Close)
	target := upstream.Target{Provider: tenants.ProviderOpenAI, BaseURL: server.URL, Key: providerKey}
	for _, path := range []string{"/half", "/long"} {
		if answer, err := upstream.Ask(t.Context(), upstream.New(true), upstream.Question{Path: path}, target); !errors.Is(err, upstream.ErrUnreachable) || answer.Body != nil {
			t.Errorf("%s: %d bytes, %v", path, len(answer.Body), err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := upstream.Ask(gone, upstream.New(true), upstream.Question{Path: "/half"}, target); !errors.Is(err, context.Canceled) {
		t.Errorf("abandoned: %v", err)
	}
}
