package pages_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// Over a slow line a page comes in pieces. It is drawn when all of it has its place.
func TestPageThatComesInPiecesDoesNotMove(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
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
	dashboard, err := url.Parse(person.URL)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(dashboard)
			request.Out.Header.Set("Accept-Encoding", "identity")
		},
		FlushInterval: -1,
		ModifyResponse: func(answer *http.Response) error {
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				return err
			}
			var pieces []io.Reader
			for _, text := range texts {
				if at := bytes.Index(body, []byte(text)); at >= 0 {
					pieces, body = append(pieces, bytes.NewReader(body[:at]), pause{answer.Request.Context()}), body[at:]
				}
			}
			answer.Body = io.NopCloser(io.MultiReader(append(pieces, bytes.NewReader(body))...))
			return nil
		},
	})
	t.Cleanup(server.Close)
	return server.URL
}

// pause is a slow line: it holds back what is read behind it, long enough for a browser to
// draw what it has.
type pause struct{ context.Context }

// Read implements io.Reader.
func (p pause) Read([]byte) (int, error) {
	select {
	case <-time.After(2 * time.Second):
		return 0, io.EOF
	case <-p.Done():
		return 0, p.Err()
	}
}
