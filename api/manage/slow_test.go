package manage_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/connections"
)

// stalled is a body that ends as one that stopped coming.
type stalled struct{ isRead bool }

func (s *stalled) Read([]byte) (int, error) {
	s.isRead = true
	return 0, connections.ErrSlow
}

// S18
func TestSlowBodyOfEveryRouteIsCut(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.member(t, "slow")
	cut := 0
	for _, route := range p.echo.Routes() {
		if !strings.HasPrefix(route.Path, "/api/v1") || route.Method != http.MethodPost && route.Method != http.MethodPut && route.Method != http.MethodPatch {
			continue
		}
		path := strings.ReplaceAll(route.Path, ":id", uuid.NewString())
		body := &stalled{}
		request := httptest.NewRequestWithContext(t.Context(), route.Method, path, body)
		request.Header.Set("Content-Type", "application/json")
		if !strings.HasSuffix(path, "/logout") {
			request.AddCookie(w.cookie)
		}
		answer := httptest.NewRecorder()
		p.echo.ServeHTTP(answer, request)
		if !body.isRead {
			continue
		}
		cut++
		if answer.Code != http.StatusRequestTimeout || answer.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(answer.Body.String(), "too slowly") {
			t.Errorf("%s %s: status %d: %s", route.Method, route.Path, answer.Code, answer.Body)
		}
	}
	if cut < 20 {
		t.Errorf("only %d routes read a body", cut)
	}
}
