package tenants_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"palimpsest/tenants"
)

// S10: the cookie is HttpOnly, SameSite=Lax and, but for plain http on loopback,
// Secure with the __Host- prefix.
func TestLoginCookieIsAsStrictAsTheOriginAllows(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct {
		name   string
		secure bool
	}{
		"https://palimpsest.example": {"__Host-palimpsest", true},
		"http://palimpsest.example":  {"__Host-palimpsest", true},
		"https://127.0.0.1:8080":     {"__Host-palimpsest", true},
		"http://127.0.0.1:8080":      {"palimpsest", false},
		"http://localhost:8080":      {"palimpsest", false},
		"http://[::1]:8080":          {"palimpsest", false},
		"::":                         {"__Host-palimpsest", true},
	} {
		cookies := tenants.NewCookies(url)
		recorder := httptest.NewRecorder()
		cookies.Set(recorder, "token")
		cookie := recorder.Result().Cookies()[0]
		if cookie.Name != want.name || cookie.Secure != want.secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
			t.Errorf("%s: cookie %+v", url, cookie)
		}
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.AddCookie(cookie)
		if token := cookies.Token(request); token != "token" {
			t.Errorf("%s: token %q read back", url, token)
		}
	}
}

func TestClearedCookieIsExpired(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	tenants.NewCookies("http://127.0.0.1:1").Clear(recorder)
	if cookie := recorder.Result().Cookies()[0]; cookie.MaxAge >= 0 || cookie.Value != "" {
		t.Errorf("cookie %+v", cookie)
	}
	if token := tenants.NewCookies("http://127.0.0.1:1").Token(httptest.NewRequest(http.MethodGet, "/", nil)); token != "" {
		t.Errorf("token %q without a cookie", token)
	}
}
