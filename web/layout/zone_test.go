package layout_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"palimpsest/web/layout"
)

func TestZoneIsTheReadersAndNothingElse(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"Europe%2FBerlin": "Europe/Berlin", "Asia/Kolkata": "Asia/Kolkata", "": "UTC", "Local": "UTC", "%zz": "UTC",
		"..%2F..%2Fetc%2Fpasswd": "UTC", "%2Fetc%2Fpasswd": "UTC", "Mars/Olympus": "UTC",
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Header.Set("Cookie", layout.ZoneCookie+"="+value)
		if got := layout.Zone(request); got.String() != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	if got := layout.Zone(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); got != time.UTC {
		t.Errorf("without a cookie %s", got)
	}
}
