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

func TestEveryPageOfADemoSaysSo(t *testing.T) {
	t.Parallel()
	const logIn = "Log in as mira@example.com."
	for name, answer := range map[string]func(echo.Context) error{
		"a page": func(c echo.Context) error {
			return layout.Page(c, http.StatusOK, layout.Frame{Title: "Keys", Who: tenants.Principal{Role: tenants.Viewer}}, templ.Raw("<h1>Keys</h1>"))
		},
		"a page for strangers": func(c echo.Context) error {
			return layout.Plain(c, http.StatusOK, "Log in", templ.Raw("<h1>Log in</h1>"))
		},
	} {
		for _, demo := range []bool{true, false} {
			recorder := httptest.NewRecorder()
			c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), recorder)
			if demo {
				layout.WithDemo(c, logIn)
			}
			if err := answer(c); err != nil {
				t.Fatal(err)
			}
			page, err := goquery.NewDocumentFromReader(strings.NewReader(recorder.Body.String()))
			if err != nil {
				t.Fatal(err)
			}
			if label := page.Find(`header [data-testid="demo"]`); (label.Text() == "Demo data") != demo {
				t.Errorf("%s, demo %v: labeled %q", name, demo, label.Text())
			}
			if tells := strings.Contains(page.Find("main").Text(), logIn); tells != (demo && name == "a page for strangers") {
				t.Errorf("%s, demo %v: tells how to log in: %v", name, demo, tells)
			}
		}
	}
}
