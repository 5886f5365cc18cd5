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

// S10: what a passkey is asked is as far out of reach as the login, and good once.
func TestPasskeyCookieIsTakenOnce(t *testing.T) {
	t.Parallel()
	cookies, recorder := tenants.NewCookies("https://palimpsest.example"), httptest.NewRecorder()
	cookies.SetPasskey(recorder, "asked")
	cookie := recorder.Result().Cookies()[0]
	if cookie.Name != "__Host-palimpsest-passkey" || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != int(tenants.PasskeyAge.Seconds()) {
		t.Errorf("cookie %+v", cookie)
	}
	request, taken := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	if cookies.Passkey(request) != "" || cookies.TakePasskey(httptest.NewRecorder(), request) != "" {
		t.Error("something is asked without a cookie")
	}
	request.AddCookie(cookie)
	if cookies.Passkey(request) != "asked" || cookies.TakePasskey(taken, request) != "asked" || taken.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("taken: %+v", taken.Result().Cookies())
	}
}
