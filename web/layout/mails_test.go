package layout_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

func TestUnverifiedReaderIsToldWhereAMailIsThatWasNotSent(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		recorder := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), recorder)
		if kept {
			layout.WithMailsKept(c)
		}
		if err := layout.Page(c, http.StatusOK, layout.Frame{Title: "Keys", Who: tenants.Principal{Role: tenants.Viewer}}, templ.Raw("<h1>Keys</h1>")); err != nil {
			t.Fatal(err)
		}
		page, err := goquery.NewDocumentFromReader(strings.NewReader(recorder.Body.String()))
		if err != nil {
			t.Fatal(err)
		}
		if notes := page.Find(`[data-testid="unverified"] [data-testid="mails-kept"]`).Length(); (notes == 1) != kept {
			t.Errorf("mails kept %v: %d notes of it", kept, notes)
		}
	}
}
