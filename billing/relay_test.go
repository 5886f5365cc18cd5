package billing_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"palimpsest/billing"
)

// second returns billing as another process has it, whose answers of Stripe pass seen
// before they arrive.
func (b bundle) second(t *testing.T, seen func(r *http.Request)) *billing.Service {
	t.Helper()
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), r.Method, b.double.URL+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header = r.Header
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		seen(r)
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body)
	}))
	t.Cleanup(relay.Close)
	config := config(b.double)
	config.APIBase = relay.URL
	return billing.New(config, billing.Deps{Store: b.store, Log: slog.New(slog.DiscardHandler), Now: b.double.Now})
}
