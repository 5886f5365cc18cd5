package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
)

// Browsers are told to come back encrypted exactly where the product is reached so.
func TestBrowsersAreToldToStayEncrypted(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://palimpsest.example": "max-age=31536000", "http://localhost:8080": "", "http://https.example": "",
	} {
		recorder := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), recorder)
		if err := New(Config{PublicURL: public}, Deps{}).headers(func(echo.Context) error { return nil })(c); err != nil {
			t.Fatal(err)
		}
		if got := recorder.Header().Get(echo.HeaderStrictTransportSecurity); got != want {
			t.Errorf("%s: %q, want %q", public, got, want)
		}
	}
}

// The form that sets the theme leads back to the page it was on, and never to another site.
func TestThemeLeadsBackToPagesOfThisSiteOnly(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"https://palimpsest.example/sessions?range=7d": "/sessions?range=7d",
		"https://palimpsest.example//evil.example/x":   "/overview",
		"https://palimpsest.example/\\evil.example":    "/overview",
		"https://palimpsest.example.evil.example/x":    "/overview",
		"https://evil.example/sessions":                "/",
		"":                                             "/",
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://palimpsest.example/theme", nil)
		request.Header.Set("Referer", from)
		if got := referer(request); got != want {
			t.Errorf("%q leads to %q, want %q", from, got, want)
		}
	}
}
