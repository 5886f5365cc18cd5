package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/tenants"
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
		"https://user@llm.example.com", "https://llm.example.com#x", "https://llm.example.com?", "https://llm.example.com?a=b",
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
