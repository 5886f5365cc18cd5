package layout_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"palimpsest/web/layout"
)

func TestPagesAreZippedForBrowsersThatTakeThat(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<p>much the same</p>", 5000)
	for name, test := range map[string]struct {
		accepts, content string
		isZipped         bool
	}{
		"a browser":            {"gzip, deflate, br, zstd", long, true},
		"what takes no gzip":   {"identity", long, false},
		"what fits one packet": {"gzip", "<p>short</p>", false},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Header.Set("Accept-Encoding", test.accepts)
		recorder := httptest.NewRecorder()
		if err := layout.Fragment(echo.New().NewContext(request, recorder), http.StatusOK, templ.Raw(test.content)); err != nil {
			t.Fatal(err)
		}
		header, body := recorder.Header(), io.Reader(recorder.Body)
		if isZipped := header.Get("Content-Encoding") == "gzip"; isZipped != test.isZipped || !strings.Contains(strings.Join(header.Values("Vary"), ","), "Accept-Encoding") {
			t.Errorf("%s: zipped %t, varies with %s", name, isZipped, header.Values("Vary"))
		}
		if test.isZipped {
			if size := recorder.Body.Len(); size > len(test.content)/20 {
				t.Errorf("%s: %d bytes of %d", name, size, len(test.content))
			}
			unzipped, err := gzip.NewReader(recorder.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = unzipped
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != test.content {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}
