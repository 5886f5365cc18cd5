package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

const (
	workspaceKey = "plm_live_canary"
	providerKey  = "sk-canary"
)

// W1, W2, W3: the workspace's key stays here, the provider's goes out.
func TestOnlyTheProvidersKeyReachesTheProvider(t *testing.T) {
	t.Parallel()
	for _, provider := range []tenants.Provider{tenants.ProviderAnthropic, tenants.ProviderOpenAI} {
		received := send(t, provider, http.Header{
			"X-Api-Key": {workspaceKey}, "Authorization": {"Bearer " + workspaceKey}, "Api-Key": {workspaceKey},
			"X-Provider-Key": {"sk-once"}, "Cookie": {"palimpsest=token"}, "X-Palimpsest-Provider-Key": {"sk-once"},
			"X-Palimpsest-Tag-Team": {"a"}, "X-Prxy-Pipe": {"ipc"}, "X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Server": {"192.0.2.1"},
			"Forwarded": {"for=192.0.2.1"}, "X-Real-Ip": {"192.0.2.1"}, "Via": {"1.1 192.0.2.1"},
			"X-Gateway-Auth": {"none", "Bearer " + workspaceKey},
		})
		text := fmt.Sprint(received)
		for _, secret := range []string{workspaceKey, "sk-once", "token", "192.0.2.1", "X-Palimpsest", "Prxy"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q reached the provider", provider, secret)
			}
		}
		key, bearer := received.Get("X-Api-Key"), received.Get("Authorization")
		if provider == tenants.ProviderAnthropic && (key != providerKey || bearer != "") {
			t.Errorf("anthropic got x-api-key %q, authorization %q", key, bearer)
		}
		if provider == tenants.ProviderOpenAI && (key != "" || bearer != "Bearer "+providerKey) {
			t.Errorf("openai got x-api-key %q, authorization %q", key, bearer)
		}
	}
}

// W1, W7: a query is kept, but for what holds the workspace's key.
func TestTheWorkspacesKeyIsTakenOutOfTheQuery(t *testing.T) {
	t.Parallel()
	arrived := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { arrived <- request.URL.RequestURI() }))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{
		"/v1/messages?beta=true":                                 "/v1/messages?beta=true",
		"/v1/models?b=%20&a=1&a=2&":                              "/v1/models?b=%20&a=1&a=2&",
		"/v1/messages?key=" + workspaceKey:                       "/v1/messages",
		"/v1/messages?b=2&key=" + workspaceKey + "&a=%2F&key=sk": "/v1/messages?b=2&a=%2F&key=sk",
		"/v1/files/" + workspaceKey:                              "/v1/files/" + workspaceKey, // a file may be called so
	} {
		response, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: path, Header: http.Header{}}, upstream.Target{BaseURL: server.URL, Key: providerKey})
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := <-arrived; got != want {
			t.Errorf("%s arrives as %s, want %s", path, got, want)
		}
	}
}

// W5, W6: everything else goes along as it came, repeated lines too.
func TestUnknownHeadersGoAlong(t *testing.T) {
	t.Parallel()
	received := send(t, tenants.ProviderAnthropic, http.Header{
		"Anthropic-Version": {"2026-10-21"}, "Anthropic-Beta": {"a,b", "future-2027-01-01"}, "X-Stainless-Retry-Count": {"0"},
		"Connection": {"keep-alive, X-Hop"}, "X-Hop": {"1"}, "Te": {"trailers"}, "Content-Encoding": {"gzip"}, "Accept-Encoding": {"br, zstd"},
	})
	for name, want := range map[string]string{
		"Anthropic-Version": "[2026-10-21]", "Anthropic-Beta": "[a,b future-2027-01-01]", "X-Stainless-Retry-Count": "[0]",
		"X-Hop": "[]", "Te": "[]", "Content-Encoding": "[]", "Accept-Encoding": "[identity]", "User-Agent": "[]",
	} {
		if got := fmt.Sprint(received[name]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Clients get what SDKs read, and nothing that acts on the dashboard's origin, on a proxy
// before us, or on the connection.
// S41
func TestAnswersHeadersComeByAnAllowList(t *testing.T) {
	t.Parallel()
	passed := http.Header{
		"Request-Id": {"r1"}, "X-Request-Id": {"r2"}, "Retry-After": {"3"}, "Retry-After-Ms": {"3000"}, "X-Should-Retry": {"true"},
		"Anthropic-Ratelimit-Requests-Reset": {"x"}, "Anthropic-Organization-Id": {"o"}, "Anthropic-Usage-Limit": {"u"}, "Openai-Processing-Ms": {"5"}, "Openai-Version": {"v"},
		"X-Ratelimit-Remaining-Tokens": {"7"}, "Ratelimit-Limit": {"9"}, "X-Codex-Primary-Used-Percent": {"1"}, "Content-Type": {"application/json"}, "Content-Encoding": {"gzip"},
		"Content-Disposition": {"attachment"}, "Etag": {"e"}, "Cf-Ray": {"c"}, "Location": {"/v1/files/1"}, "Operation-Location": {"/x"}, "Age": {"1", "2"},
	}
	from := passed.Clone()
	for _, name := range []string{
		"Connection", "X-Hop", "Transfer-Encoding", "Content-Length", "X-Palimpsest-Levels", "Set-Cookie", "Set-Cookie2", "Clear-Site-Data", "Refresh",
		"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "Content-Security-Policy", "Content-Security-Policy-Report-Only",
		"Strict-Transport-Security", "Public-Key-Pins", "Expect-Ct", "Alt-Svc", "Link", "Www-Authenticate", "Proxy-Authenticate", "X-Frame-Options", "X-Content-Type-Options",
		"Referrer-Policy", "Permissions-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Report-To", "Reporting-Endpoints", "Nel", "Origin-Agent-Cluster",
		"Service-Worker-Allowed", "Sourcemap", "X-Sourcemap", "X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "X-Lighttpd-Send-File", "Server", "X-Powered-By", "Server-Timing",
		"Speculation-Rules", "Accept-Ch", "Critical-Ch", "Document-Policy", "X-Dns-Prefetch-Control", "X-Whatever", "Upgrade", "Trailer", "Set-Login", "No-Vary-Search",
	} {
		from[name] = []string{"X-Hop"}
	}
	header := http.Header{}
	upstream.CopyResponseHeader(header, from)
	passed.Set("X-Content-Type-Options", "nosniff")
	if !reflect.DeepEqual(header, passed) {
		t.Errorf("headers %v, want %v", header, passed)
	}
}

// S16, S43: no connection to an address that is not public, whatever name leads there.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { dialled.Add(1) }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	client := upstream.New(false)
	for _, host := range []string{
		"127.0.0.1", "localhost", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"192.0.2.1", "198.18.0.1", "240.0.0.1", "[::1]", "[fc00::1]", "[fe80::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	} {
		response, err := client.Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages?key=secret", Header: http.Header{}}, upstream.Target{
			Provider: tenants.ProviderAnthropic, BaseURL: "http://" + host + ":" + port, Key: providerKey,
		})
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: answered", host)
			continue
		}
		if !errors.Is(err, upstream.ErrForbiddenAddress) {
			t.Errorf("%s: %v", host, err)
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), providerKey) {
			t.Errorf("%s: the error shows a secret: %v", host, err)
		}
	}
	if dialled.Load() != 0 {
		t.Errorf("%d connections were opened", dialled.Load())
	}
}

// S16, S43: a redirect is handed on, not followed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(private.Close)
	server := httptest.NewServer(http.RedirectHandler(private.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	response, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}, Body: []byte("{}")}, upstream.Target{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusTemporaryRedirect || elsewhere.Load() != 0 {
		t.Errorf("status %d, %d requests elsewhere", response.StatusCode, elsewhere.Load())
	}
}

func TestUnreachableProviderIsTold(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages?key=secret", Header: http.Header{}}, upstream.Target{BaseURL: "http://" + address, Key: providerKey})
	if !errors.Is(err, upstream.ErrUnreachable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestCanceledRequestSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		cancel()
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	_, err := upstream.New(true).Send(ctx, upstream.Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}}, upstream.Target{BaseURL: server.URL})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestBaseURLsAreCheckedBeforeTheyAreStored(t *testing.T) {
	t.Parallel()
	for raw, allowed := range map[string]bool{
		"https://api.groq.com/openai": true, "https://api.groq.com/openai/v1": true, "http://api.groq.com": false,
		"https://127.0.0.1": false, "https://[::1]:8443": false, "https://user@example.com": false,
		"https://example.com/?a=b": false, "https://example.com/#a": false, "ftp://example.com": false, "example.com": false, "": false,
		"https://8.8.8.8": true, "https://[2606:4700::6810:84e5]:8443/v1": true, // the public ones of S16's addresses
		"https://10.0.0.1": false, "https://169.254.169.254": false, "https://[::ffff:127.0.0.1]": false, "https://[64:ff9b::7f00:1]": false, "https://[2002:7f00:1::]": false,
	} {
		err := upstream.VerifyBaseURL(raw, false)
		var invalid tenants.Invalid
		if allowed != (err == nil) || err != nil && (!errors.As(err, &invalid) || invalid.Field != "base_url") {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if err := upstream.VerifyBaseURL("http://127.0.0.1:11434", true); err != nil {
		t.Errorf("private base URL where it is allowed: %v", err)
	}
}

// send sends a request with headers and returns those that arrived.
func send(t *testing.T, provider tenants.Provider, header http.Header) http.Header {
	t.Helper()
	arrived := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { arrived <- request.Header }))
	t.Cleanup(server.Close)
	response, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages", Header: header, Body: []byte("{}")}, upstream.Target{
		Provider: provider, BaseURL: server.URL + "/v1/", Key: providerKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return <-arrived
}
