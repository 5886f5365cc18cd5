package upstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"palimpsest/api/upstream"
	"palimpsest/tenants"
)

// S14: a provider that repeats the key in its error does not give it away; what is no
// error, and everything else of one, comes as it was sent.
func TestKeyIsStarredOutOfErrors(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400, 401, 500} {
		body := strings.Repeat("sk-can ", 3) + "Incorrect API key provided: " + providerKey + providerKey + ". sk-cana"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("X-Refused", request.Header.Get("X-Api-Key"))
			w.WriteHeader(status)
			for _, part := range strings.SplitAfter(body, "a") {
				_, _ = io.WriteString(w, part)
				_ = http.NewResponseController(w).Flush()
			}
		}))
		t.Cleanup(server.Close)
		response, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}},
			upstream.Target{Provider: tenants.ProviderAnthropic, BaseURL: server.URL, Key: providerKey})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.OneByteReader(response.Body))
		_ = response.Body.Close()
		want, header := body, providerKey
		if status >= 400 {
			stars := strings.Repeat("*", len(providerKey))
			want, header = strings.ReplaceAll(body, providerKey, stars), stars
		}
		if err != nil || string(got) != want || response.Header.Get("X-Refused") != header {
			t.Errorf("%d: %q with %q, %v", status, got, response.Header.Get("X-Refused"), err)
		}
	}
}
