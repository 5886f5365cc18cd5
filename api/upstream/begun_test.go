package upstream

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"palimpsest/tenants"
)

// S47: it is known whether a request without an answer may have reached the provider.
func TestARequestThatWasNotWrittenHasNotBegun(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	cuts := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cuts.Close)
	client := New(true)
	t.Cleanup(client.Close)
	for base, want := range map[string]bool{closed.URL: false, cuts.URL: true, "http://nowhere.invalid": false} {
		var begun atomic.Bool
		response, err := client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages", Body: []byte("{}"), Begun: &begun},
			Target{Provider: tenants.ProviderAnthropic, BaseURL: base})
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: status %d", base, response.StatusCode)
		}
		if begun.Load() != want {
			t.Errorf("%s: begun is %t", base, begun.Load())
		}
	}
}
