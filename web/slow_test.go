package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"palimpsest/api/connections"
)

// stalled is a body that stops coming after its beginning.
type stalled struct{ *strings.Reader }

func (s stalled) Read(into []byte) (int, error) {
	if s.Len() == 0 {
		return 0, connections.ErrSlow
	}
	return s.Reader.Read(into)
}

// S18: no handler works with the half of a form.
func TestSlowFormIsCut(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=b"} {
		body := stalled{strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nhalf")}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/keys", body)
		request.Header.Set("Content-Type", media)
		handler := (&Server{}).limit(func(echo.Context) error {
			t.Errorf("%s: the handler ran", media)
			return nil
		})
		err := handler(echo.New().NewContext(request, httptest.NewRecorder()))
		if found := problemOf(err); found.status != http.StatusRequestTimeout || !strings.Contains(found.title, "too slowly") {
			t.Errorf("%s: %v is shown as %+v", media, err, found)
		}
	}
}

// S49: a person whose login has too many connections reads what to do.
func TestTooManyConnectionsAreTold(t *testing.T) {
	t.Parallel()
	found := problemOf(connections.TooMany{Of: connections.OfKey, Limit: 3})
	if found.status != http.StatusTooManyRequests || !strings.Contains(found.text, "Close other tabs") {
		t.Errorf("%+v", found)
	}
}
