package upstream

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/tenants"
)

// S16, S43: a request whose body is streamed is held to the same addresses as any other.
func TestStreamedRequestsDialNoPrivateAddress(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { dialled.Add(1) }))
	t.Cleanup(server.Close)
	for name, length := range map[string]int64{"known length": 4, "unknown length": -1} {
		client := New(false)
		t.Cleanup(client.Close)
		asked := Request{Method: http.MethodPost, Path: "/v1/files", Stream: strings.NewReader("body"), Length: length}
		response, err := client.Send(t.Context(), asked, Target{Provider: tenants.ProviderOpenAI, BaseURL: server.URL})
		if err == nil {
			_ = response.Body.Close()
		}
		if !errors.Is(err, ErrForbiddenAddress) || dialled.Load() != 0 {
			t.Errorf("%s: %d requests arrived, error %v", name, dialled.Load(), err)
		}
	}
}

// ending are the headers that end at the proxy, whatever the code says of them.
const ending = `Authorization X-Api-Key Api-Key X-Provider-Key X-Prxy-Pipe Cookie Host Content-Length Content-Encoding Expect
	Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-Ip Via True-Client-Ip Cf-Connecting-Ip
	X-Palimpsest-Provider-Key X-Palimpsest-Session-Id
	Connection Keep-Alive Proxy-Authenticate Proxy-Authorization Proxy-Connection Te Trailer Transfer-Encoding Upgrade`

// W1: what ends at the proxy ends there on the way to a provider's own base URL too,
// where unknown headers that look secret go along.
func TestHeadersThatEndHereReachNoProvider(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "https://llm.example.com"} {
		client := http.Header{"X-Custom-Token": {"theirs"}, "X-Trace": {"kept"}}
		for name := range strings.FieldsSeq(ending) {
			client.Set(name, "canary")
		}
		sent := requestHeader(client, Target{Provider: tenants.ProviderAnthropic, BaseURL: base, Key: "sk"})
		for name, values := range sent {
			if strings.Contains(strings.Join(values, ""), "canary") {
				t.Errorf("base URL %q: %s reaches the provider", base, name)
			}
		}
		if sent.Get("X-Trace") != "kept" {
			t.Errorf("base URL %q: a header that says nothing is lost", base)
		}
		if got := sent.Get("X-Custom-Token"); (got == "theirs") != (base == "") {
			t.Errorf("base URL %q: X-Custom-Token is %q", base, got)
		}
	}
}

// E9: an upstream has one name, however its base URL is spelled and whichever key
// opens it.
func TestUpstreamHasOneName(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                                  "",
		"https://api.anthropic.com":         "",
		"https://API.anthropic.com:443/v1/": "",
		"https://llm.example.com":           "https://llm.example.com",
		"https://llm.example.com/v1":        "https://llm.example.com",
		"https://LLM.example.com:443/":      "https://llm.example.com",
		"https://llm.example.com:8443/v1":   "https://llm.example.com:8443",
		"http://llm.example.com:80":         "http://llm.example.com",
		"https://llm.example.com/Team/v1":   "https://llm.example.com/Team",
		"https://a.example.com/openai/deployments/{model}?api-version=2026-01-01": "https://a.example.com/openai/deployments/{model}?api-version=2026-01-01",
	} {
		for _, key := range []string{"sk-1", "sk-2"} {
			target := Target{Provider: tenants.ProviderAnthropic, BaseURL: base, Key: key}
			if got := target.Upstream(); got != want {
				t.Errorf("%q: %q, want %q", base, got, want)
			}
		}
	}
	if got := (Target{Provider: tenants.ProviderOpenAI, BaseURL: "https://api.anthropic.com"}).Upstream(); got == "" {
		t.Error("another provider's base URL is taken for OpenAI's own")
	}
}
