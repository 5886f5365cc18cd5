package session_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// Over a slow line a page comes in pieces. It is drawn when all of it has its place.
func TestPageThatComesInPiecesDoesNotMove(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	browser := browsertest.Start(t)
	for _, width := range []int64{browsertest.Phone, browsertest.Desktop} {
		tab := browser.Open(t, browsertest.View{URL: inPieces(t, person, `<dl class="ledger slim"`, `id="read"`), Width: width, Cookies: person.Cookies()})
		tab.Go("/sessions/" + overview.ID.String())
		for _, fault := range tab.LoadFaults() {
			if strings.HasPrefix(fault, "moved") { // what is not compressed weighs more
				t.Errorf("%d px: %s", width, fault)
			}
		}
	}
}

// inPieces serves a person's dashboard over a line that pauses in front of texts of a page.
func inPieces(t *testing.T, person *webtest.Person, texts ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), r.Method, person.URL+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header = r.Header.Clone()
		request.Header.Set("Accept-Encoding", "identity")
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return // the tab is gone
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return
		}
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.StatusCode)
		rest := string(body)
		for _, text := range texts {
			piece, behind, found := strings.Cut(rest, text)
			if !found {
				break
			}
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
			select { // the line is slow, nothing waits for it
			case <-time.After(400 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
			rest = text + behind
		}
		_, _ = io.WriteString(w, rest)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
