package upstream_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

// asked sends a request to a target at a server that tells what arrived.
func asked(t *testing.T, target upstream.Target, path string, header http.Header) *http.Request {
	t.Helper()
	arrived := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { arrived <- request }))
	t.Cleanup(server.Close)
	target.BaseURL = server.URL + target.BaseURL
	response, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: path, Header: header}, target)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return <-arrived
}

func TestBaseURLsLeadToTheirProvidersPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ base, path, model, want string }{
		{"", "/v1/chat/completions", "m", "/v1/chat/completions"},
		{"/v1", "/v1/chat/completions", "m", "/v1/chat/completions"},
		{"/openai/v1/", "/v1/responses?a=b", "m", "/openai/v1/responses?a=b"}, // Groq, Azure's v1 API
		{"/api/v1", "/v1/models", "", "/api/v1/models"},                       // OpenRouter
		{"/openai/v1?api-version=preview", "/v1/chat/completions", "m", "/openai/v1/chat/completions?api-version=preview"},
		{"/openai/deployments/{model}?api-version=2024-10-21", "/v1/chat/completions", "gpt 5/x", "/openai/deployments/gpt%205%2Fx/chat/completions?api-version=2024-10-21"},
		{"/openai/deployments/{model}?api-version=2024-10-21", "/v1/models?limit=3", "", "/openai/models?limit=3&api-version=2024-10-21"},
	} {
		got := asked(t, upstream.Target{Provider: tenants.ProviderOpenAI, BaseURL: test.base, Key: providerKey, Model: test.model}, test.path, nil)
		if got.RequestURI != test.want {
			t.Errorf("%s and %s lead to %s, want %s", test.base, test.path, got.RequestURI, test.want)
		}
	}
	_, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/chat/completions"},
		upstream.Target{BaseURL: "http://127.0.0.1:1/openai/deployments/{model}", Model: ".."})
	if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "model" {
		t.Errorf("a model that climbs out of its place: %v", err)
	}
}

func TestKeyStandsWhereTheProviderLooksForIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		provider tenants.Provider
		auth     tenants.Auth
		name     string
		value    string
	}{
		{tenants.ProviderAnthropic, tenants.AuthUsual, "X-Api-Key", providerKey},
		{tenants.ProviderOpenAI, tenants.AuthUsual, "Authorization", "Bearer " + providerKey},
		{tenants.ProviderOpenAI, tenants.AuthAPIKey, "Api-Key", providerKey},
		{tenants.ProviderAnthropic, tenants.AuthBearer, "Authorization", "Bearer " + providerKey},
		{tenants.ProviderOpenAI, tenants.AuthXAPIKey, "X-Api-Key", providerKey},
	} {
		got := asked(t, upstream.Target{Provider: test.provider, Auth: test.auth, Key: providerKey}, "/v1/messages", http.Header{
			"Api-Key": {workspaceKey}, "X-Api-Key": {workspaceKey}, "Authorization": {"Bearer " + workspaceKey},
		}).Header
		for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			want := ""
			if name == test.name {
				want = test.value
			}
			if got.Get(name) != want {
				t.Errorf("%s, %q: %s is %q, want %q", test.provider, test.auth, name, got.Get(name), want)
			}
		}
	}
}

// S16: a base URL of someone's own gets nothing that a client sent to open a door.
func TestSecretsOfTheClientDoNotReachACustomHost(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	for _, name := range []string{
		"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization", "X-Goog-Api-Key", "X-Auth-Token", "X-Amz-Security-Token",
		"Cf-Access-Client-Secret", "X-Vault-Password", "Cf-Aig-Authorization", "X-Palimpsest-Provider-Key", "X-Provider-Key",
	} {
		header.Set(name, "canary")
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Proxy-Connection", "X-Hop", "X-Forwarded-For", "Via", "True-Client-Ip"} {
		header.Set(name, "canary")
	}
	header.Add("Connection", "X-Hop")
	header.Set("Anthropic-Beta", "token-efficient-tools-2025-02-19")
	got := asked(t, upstream.Target{Provider: tenants.ProviderAnthropic, Key: providerKey}, "/v1/messages", header).Header
	for name, values := range got {
		if strings.Contains(strings.Join(values, " "), "canary") && values[0] != providerKey {
			t.Errorf("%s reached the host: %v", name, values)
		}
	}
	if got.Get("Anthropic-Beta") == "" {
		t.Error("a header that holds no secret is gone")
	}
}

func TestHeadersOfTheKeyGoAlong(t *testing.T) {
	t.Parallel()
	headers := []tenants.Header{{Name: "HTTP-Referer", Value: "https://example.com"}, {Name: "x-title", Value: "Northbeam"}}
	got := asked(t, upstream.Target{Provider: tenants.ProviderOpenAI, Key: providerKey, Headers: headers}, "/v1/chat/completions", http.Header{"X-Title": {"the client's"}}).Header
	if got.Get("Http-Referer") != "https://example.com" || len(got["X-Title"]) != 1 || got.Get("X-Title") != "Northbeam" {
		t.Errorf("headers %v", got)
	}
}

func TestHeadersThatMustNotBeAddedAreRefused(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{
		"HTTP-Referer": true, "X-Title": true, "OpenAI-Organization": true, "anthropic-beta": true,
		"Authorization": false, "x-api-key": false, "Cookie": false, "X-Auth-Token": false, "Client-Secret": false, "Host": false,
		"Content-Length": false, "content-type": false, "Connection": false, "Transfer-Encoding": false, "TE": false, "Upgrade": false,
		"X-Forwarded-For": false, "X-Palimpsest-Lane": false, "Accept-Encoding": false, "": false, "X Y": false, "X:Y": false, "Proxy-Authorization": false,
	} {
		err := upstream.VerifyHeaders([]tenants.Header{{Name: name, Value: "v"}})
		invalid, is := errors.AsType[tenants.Invalid](err)
		if allowed != (err == nil) || err != nil && (!is || invalid.Field != "headers") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, value := range []string{"a\r\nX-Evil: 1", strings.Repeat("x", 513), "\x00"} {
		if err := upstream.VerifyHeaders([]tenants.Header{{Name: "X-Title", Value: value}}); err == nil {
			t.Errorf("%.20q is allowed", value)
		}
	}
	if err := upstream.VerifyHeaders(make([]tenants.Header, 17)); err == nil {
		t.Error("17 headers are allowed")
	}
}

func TestTemplatesOfBaseURLsAreChecked(t *testing.T) {
	t.Parallel()
	for raw, allowed := range map[string]bool{
		"https://r.openai.azure.com/openai/v1":                                         true,
		"https://r.openai.azure.com/openai/deployments/{model}?api-version=2024-10-21": true,
		"https://r.openai.azure.com/openai?api-version=preview":                        true,
		"https://{model}.example.com":                                                  false,
		"https://example.com/{model}":                                                  false,
		"https://example.com/{model}x":                                                 false,
		"https://example.com/a/{model}/{model}":                                        false,
		"https://example.com/{other}":                                                  false,
		"https://example.com/?key=sk-secret":                                           false,
		"https://example.com/?api-version=1&key=sk-secret":                             false,
		"https://example.com/?":                                                        false,
	} {
		if err := upstream.VerifyBaseURL(raw, false); allowed != (err == nil) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
