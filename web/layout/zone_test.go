package layout_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/web/layout"
)

func TestZoneIsTheReadersElseTheWorkspacesElseUTC(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cookie, workspace, want string }{
		{"Europe%2FBerlin", "Asia/Tokyo", "Europe/Berlin"},
		{"Asia/Kolkata", "", "Asia/Kolkata"},
		{"", "Asia/Tokyo", "Asia/Tokyo"},
		{"", "", "UTC"},
		{"Local", "", "UTC"},
		{"%zz", "Asia/Tokyo", "Asia/Tokyo"},
		{"..%2F..%2Fetc%2Fpasswd", "Local", "UTC"},
		{"%2Fetc%2Fpasswd", "Mars/Olympus", "UTC"},
		{"Mars/Olympus", "Asia/Tokyo", "Asia/Tokyo"},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if c.cookie != "" {
			request.Header.Set("Cookie", layout.ZoneCookie+"="+c.cookie)
		}
		e := echo.New().NewContext(request, httptest.NewRecorder())
		layout.WithZone(e, c.workspace)
		if got := layout.Zone(e.Request()); got.String() != c.want {
			t.Errorf("%q in %q: %s, want %s", c.cookie, c.workspace, got, c.want)
		}
		if known := c.want == "Europe/Berlin" || c.want == "Asia/Kolkata"; layout.KnowsZone(e.Request()) != known {
			t.Errorf("%q is known: %t", c.cookie, !known)
		}
	}
}
