package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/tenants/guard"
)

// S16: what cannot be a public base URL is refused when it is given, in every spelling.
func TestBaseURLsThatLeadNowherePublicAreRefused(t *testing.T) {
	t.Parallel()
	for _, base := range []string{
		"https://localhost", "https://LOCALHOST:8443/v1", "https://localhost.", "https://api.localhost", "https://a.b.localhost./v1",
		"https://127.0.0.1", "https://[::1]", "https://[::ffff:10.0.0.1]", "https://10.0.0.1:443",
		"http://llm.example.com",
	} {
		if err := VerifyBaseURL(base, false); err == nil {
			t.Errorf("%s is taken", base)
		}
		if err := VerifyBaseURL(base, true); err != nil {
			t.Errorf("%s is refused where private addresses are allowed: %v", base, err)
		}
	}
	for _, base := range []string{
		"", "llm.example.com", "https://", "https:///v1", "ftp://llm.example.com", "file:///etc/passwd", "//llm.example.com",
		"https://user@llm.example.com", "https://llm.example.com#x", "https://llm.example.com#", "http://127.0.0.1:9090/metrics#", "https://user:@llm.example.com",
		"http://169.254.169.254/latest", "https://[fe80::1]", "https://[::ffff:169.254.169.254]", "https://100.100.100.200", "https://[fd00:ec2::254]", "https://llm.example.com?", "https://llm.example.com?a=b",
		"https://{model}.example.com/v1", "https://{a}.example.com", "https://llm.example.com/{model}/{model}", "https://llm.example.com/a/{model}x",
		"https://llm.example.com/{other}", "https://llm.example.com{model}",
	} {
		for _, allowPrivate := range []bool{false, true} {
			if invalid, is := errors.AsType[tenants.Invalid](VerifyBaseURL(base, allowPrivate)); !is || invalid.Field != "base_url" {
				t.Errorf("%q is taken", base)
			}
		}
	}
	for _, base := range []string{
		"https://llm.example.com", "https://localhost.example.com", "https://mylocalhost", "https://llm.example.com/a/{model}", "https://llm.example.com/a/{model}/b",
		"https://llm.example.com?api-version=2026-01-01",
	} {
		if err := VerifyBaseURL(base, false); err != nil {
			t.Errorf("%s is refused: %v", base, err)
		}
	}
}

func TestProviderKeyBringsBoundedHeaders(t *testing.T) {
	t.Parallel()
	headers := make([]tenants.Header, maxHeaders+1)
	for i := range headers {
		headers[i] = tenants.Header{Name: fmt.Sprintf("X-Trace-%d", i), Value: strings.Repeat("v", maxHeaderValue)}
	}
	if err := VerifyHeaders(headers[:maxHeaders]); err != nil {
		t.Errorf("as many as are allowed: %v", err)
	}
	if err := VerifyHeaders(headers); err == nil {
		t.Error("one more is taken")
	}
	headers[0].Value += "v"
	if err := VerifyHeaders(headers[:1]); err == nil {
		t.Error("a value that is too long is taken")
	}
}

// A streamed body arrives as it was sent, with its encoding. An empty one is not read.
func TestStreamedBodiesArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	type arrived struct {
		body, encoding string
		length         int64
	}
	requests := make(chan arrived, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		requests <- arrived{string(body), request.Header.Get("Content-Encoding"), request.ContentLength}
	}))
	t.Cleanup(server.Close)
	client := New(true)
	t.Cleanup(client.Close)
	for name, test := range map[string]struct {
		asked Request
		want  arrived
	}{
		"known length":   {Request{Stream: strings.NewReader("zipped"), Length: 6}, arrived{"zipped", "gzip", 6}},
		"unknown length": {Request{Stream: strings.NewReader("zipped"), Length: -1}, arrived{"zipped", "gzip", -1}},
		"no bytes":       {Request{Stream: strings.NewReader("never read"), Length: 0}, arrived{}},
		"a body":         {Request{Body: []byte("plain")}, arrived{"plain", "", 5}},
	} {
		test.asked.Method, test.asked.Path, test.asked.Header = http.MethodPost, "/v1/files", http.Header{"Content-Encoding": {"gzip"}}
		response, err := client.Send(t.Context(), test.asked, Target{BaseURL: server.URL, Key: "sk"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = response.Body.Close()
		if got := <-requests; got != test.want {
			t.Errorf("%s: %+v arrives, want %+v", name, got, test.want)
		}
	}
}

// S51: a base URL that was stored before fragments and users were refused is not used.
func TestStoredBaseURLWithAFragmentIsNotUsed(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { asked <- request.URL.Path }))
	t.Cleanup(server.Close)
	for _, base := range []string{server.URL + "/metrics#", server.URL + "/metrics#x", strings.Replace(server.URL, "http://", "http://user@", 1)} {
		response, err := New(true).Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}}, Target{BaseURL: base})
		if err == nil {
			_ = response.Body.Close()
		}
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "base_url" || len(asked) > 0 {
			t.Errorf("%s: %v, asked %d times", base, err, len(asked))
		}
	}
}

// S43, S51: the program's own listener is reached by none of the clients, by whatever name. A key
// without the right reaches no private address.
func TestGuardHoldsForEveryClient(t *testing.T) {
	t.Parallel()
	answered := func(http.ResponseWriter, *http.Request) {}
	own, other := httptest.NewServer(http.HandlerFunc(answered)), httptest.NewServer(http.HandlerFunc(answered))
	t.Cleanup(own.Close)
	t.Cleanup(other.Close)
	by := guard.New(true)
	by.Own(own.Listener.Addr())
	client, webhooks := NewGuarded(by), NewGuardedClient(by, time.Minute)
	t.Cleanup(client.Close)
	send := func(target Target) error {
		response, err := client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}}, target)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	get := func(address string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := webhooks.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	for _, address := range []string{own.URL, strings.Replace(own.URL, "127.0.0.1", "localhost", 1), strings.Replace(own.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1), strings.Replace(own.URL, "127.0.0.1", "0.0.0.0", 1)} {
		if err := send(Target{BaseURL: address}); !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("%s: %v", address, err)
		}
		if err := get(address); !IsForbidden(err) {
			t.Errorf("webhook to %s: %v", address, err)
		}
	}
	if err := send(Target{BaseURL: other.URL}); err != nil {
		t.Errorf("another listener: %v", err)
	}
	if err := get(other.URL); err != nil {
		t.Errorf("a webhook to another listener: %v", err)
	}
	if err := send(Target{BaseURL: other.URL, PublicOnly: true}); !errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("without the right: %v", err)
	}
}
