package signon_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"code.dny.dev/ssrf"

	"palimpsest/tenants/guard"
	"palimpsest/tenants/signon"
)

// S16, S43: a workspace's issuer leads to none of our addresses.
func TestPrivateAddressesAreNotAsked(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	private := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	t.Cleanup(private.Close)
	response, err := get(t, signon.NewClient(guard.New(false)), private.URL)
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, ssrf.ErrProhibitedIP) || len(asked) > 0 {
		t.Errorf("%v, asked %d times", err, len(asked))
	}
}

func TestAnswersOfProvidersAreBounded(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 3<<20))
	}))
	t.Cleanup(provider.Close)
	client := signon.NewClient(guard.New(true))
	for path, want := range map[string]int{"/": http.StatusOK, "/moved": http.StatusFound} {
		response, err := get(t, client, provider.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || len(content) > 1<<20 || response.StatusCode != want {
			t.Errorf("%s: %d with %d bytes, %v", path, response.StatusCode, len(content), err)
		}
	}
}

func get(t *testing.T, client *http.Client, address string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(request)
}
